"""Arguments that several verbs share."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from penstock.cli.session import Session

__all__ = ["Run", "add_app", "add_common", "add_json", "add_verb", "command", "read_count"]

Run = Callable[[Session], int | None]
T = TypeVar("T")


def command(parser: argparse.ArgumentParser, run: Run) -> None:
    """Say what runs a verb, and give it the arguments that all have."""
    add_common(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def add_verb(verbs: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add a verb below another one; the list of verbs and its own help say what it does."""
    found: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    return found


def add_common(parser: argparse.ArgumentParser, *, default: Any) -> None:
    """Add what may stand before the verb and behind it; behind it nothing is a default."""
    behind = default is argparse.SUPPRESS
    group = parser.add_argument_group("everywhere")
    group.add_argument("--config", type=Path, metavar="FILE", default=default, help="penstock.toml")
    group.add_argument(
        "--profile", metavar="NAME", default=default, help="the profile of the file to use"
    )
    group.add_argument(
        "--set",
        dest="more_settings" if behind else "settings",
        action="append",
        type=_assignment,
        default=default,
        metavar="KEY=VALUE",
        help="one setting, such as kafka.bootstrap=host:9092 (repeatable)",
    )
    group.add_argument("--debug", action="store_true", default=default, help="show tracebacks")


def _assignment(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def add_app(parser: argparse.ArgumentParser, *, flag: bool = False, text: str = "") -> None:
    """Add the application: a file, a directory with an app.py, or module:variable."""
    help_ = (
        text or "a file, a directory with an app.py, or module[:variable]; default: this directory"
    )
    if flag:
        parser.add_argument("--app", metavar="APP", help=help_)
    else:
        parser.add_argument("app", metavar="APP", nargs="?", default=".", help=help_)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the choice of JSON on standard output."""
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def read_count(text: str) -> int:
    """Return how many are wanted; ArgumentTypeError where that is none."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)
