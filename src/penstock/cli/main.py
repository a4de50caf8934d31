"""Parse the command line, run the verb, and show errors.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from penstock import __version__
from penstock.cli.arguments import add_common
from penstock.cli.screen.logformat import tell_of_threads
from penstock.cli.screen.terminal import Terminal
from penstock.cli.session import Session
from penstock.cli.stopping import INTERRUPTED
from penstock.core.hints import did_you_mean
from penstock.core.printable import printable
from penstock.errors import PenstockError

__all__ = ["VERBS", "Verb", "main", "make_parser"]


class Verb(NamedTuple):
    """A verb of the command: its module below ``penstock.cli``, and what it does."""

    module: str
    summary: str


VERBS = {
    "init": Verb("application.init", "create a project that runs and has a test"),
    "check": Verb("application.check", "verify an application; start nothing"),
    "graph": Verb("application.graph", "draw an application"),
    "connectors": Verb("application.connectors", "show the connectors and their options"),
    "explain": Verb("application.explain", "show what the parts of an application compute"),
    "dev": Verb("running.dev", "run a whole application on this machine"),
    "run": Verb("running.run", "run parts of an application in this process"),
    "status": Verb("status.status", "show the parts that run in this project"),
    "console": Verb("running.console", "show what runs in this project, in a browser"),
    "rebuild": Verb(
        "running.rebuild",
        "recompute a pipeline from the log and replace its output",
    ),
    "replay": Verb("running.replay", "run a part over a range of the past, into separate topics"),
    "reset": Verb("running.reset", "restart a service from the beginning of its input"),
    "query": Verb("log.query", "run SQL over states, tables, streams and the lake"),
    "live": Verb("log.live", "follow a live query: its result, and then each change"),
    "lake": Verb("log.lake", "show and maintain lake tables"),
    "topics": Verb("log.topics", "show, read and write topics"),
    "state": Verb("log.state", "show the state of running services"),
    "groups": Verb("log.groups", "show consumer groups and their lag"),
    "dead-letters": Verb("log.deadletters", "show dead letters, and give them back"),
    "config": Verb("machine.config", "show the settings and where they came from"),
    "broker": Verb("log.broker", "run the embedded broker in the foreground"),
    "export": Verb("machine.export", "write dashboards and alerts for other systems"),
    "bundle": Verb("machine.bundle", "write one file for a bug report, without secrets"),
    "jars": Verb("machine.jars", "fetch and verify the jars of Kafka and Spark"),
    "doctor": Verb("machine.doctor", "show what is missing on this machine, and how to fix it"),
}
_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest word, and imports a verb's module on use."""

    verb: Verb | None = None
    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Learn the verb's own arguments first; then take options wherever they stand.

        Otherwise an option between two words would take those that may be left out for left out:
        ``topics produce words --app . '{}'`` had no record, and one word too many.
        """
        if self.verb is not None:
            name, self.verb = self.verb.module, None
            import_module(f"penstock.cli.{name}").register(self)
        if self._mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and how to learn more, and exit with 2."""
        if wrong := _CHOICE.search(message):
            known = [word.strip("' ") for word in wrong[2].split(",")]
            message = f"there is no {wrong[1]!r}: {did_you_mean(wrong[1], known)}"
        self.exit(2, f"error: {printable(message)}\n  hint: {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="penstock",
        description="A fast data platform in Python, on Kafka and Spark.",
        epilog="penstock VERB --help shows the options of a verb.",
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    add_common(parser, default=None)
    parser.set_defaults(debug=False, settings=[], more_settings=[])
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=_Parser)
    for name, verb in VERBS.items():
        verbs.add_parser(name, help=verb.summary, description=verb.summary).verb = verb
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What an output's encoding lacks is shown as an escape: no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    arguments = make_parser().parse_args(argv)
    arguments.settings = [*arguments.settings, *arguments.more_settings]
    terminal = Terminal()
    tell_of_threads(terminal.trace)
    return _guarded(lambda: _run(arguments, terminal), terminal, debug=arguments.debug)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    code = arguments.run(Session(arguments, terminal))
    terminal.out.flush()
    return int(code or 0)


def _guarded(run: Callable[[], int], terminal: Terminal, *, debug: bool) -> int:
    """Return the exit code of a run, and turn exceptions into messages."""
    try:
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered must not raise once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except PenstockError as error:
        if debug:
            terminal.trace(error)
        terminal.error(error)
    except Exception as error:  # noqa: BLE001 - the last resort, so that nobody gets a traceback
        if debug:
            terminal.trace(error)
        terminal.failure(f"{type(error).__name__}: {_said(error)} [internal]")
        if not debug:
            terminal.note("  hint: run the command again with --debug, and report what it shows")
    return 1


def _said(error: Exception) -> str:
    """Return the text of an exception, also where it has none: PySpark's ask a JVM, maybe gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it raises, it is not what there is to tell
        return " ".join(each for each in error.args if isinstance(each, str))
