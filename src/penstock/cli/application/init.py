"""``penstock init``: a project that runs, with a test that passes."""

import argparse
from importlib.resources import files
from pathlib import Path

from penstock.cli.arguments import command
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.core.topic import topic_name_problem
from penstock.errors import ConfigurationError

__all__ = ["register"]

_FILES = {
    "app.py": "app.py",
    "readings.jsonl": "readings.jsonl",
    "tests/test_app.py": "test_app.py",
    "penstock.toml": "penstock.toml",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
}
_PLACEHOLDER = "{{name}}"


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "directory",
        metavar="NAME",
        type=Path,
        help="the directory to create; it may exist if it is empty",
    )
    command(parser, _init)


def _init(session: Session) -> None:
    directory: Path = session.arguments.directory
    name = directory.absolute().name
    if wrong := topic_name_problem(name):
        raise ConfigurationError(
            f"{name!r} cannot be the name of an application: {wrong}", code="init.name"
        )
    try:
        _write(directory, name)
    except OSError as error:
        raise ConfigurationError(
            f"{directory} cannot be written: {error.strerror}", code="init.directory"
        ) from error
    terminal = session.terminal
    for file in _FILES:
        terminal.line(shortened(directory / file))
    terminal.notes_below(
        f"\nnext:\n  cd {directory}\n  pytest\n  penstock dev --watch hottest:celsius"
    )


def _write(directory: Path, name: str) -> None:
    if directory.is_dir() and (found := sorted(path.name for path in directory.iterdir())):
        raise ConfigurationError(
            f"{directory} is not empty",
            code="init.not-empty",
            detail=f"it holds {', '.join(found[:5])}",
            hint="choose another name, or delete the contents",
        )
    templates = files("penstock.cli") / "templates"
    for file, template in _FILES.items():
        text = (templates / f"{template}.template").read_text(encoding="utf-8")
        target = directory / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace(_PLACEHOLDER, name), encoding="utf-8")
