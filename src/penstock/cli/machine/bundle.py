"""``penstock bundle``: one file that says how everything is, for a bug report, without secrets."""

import argparse
import http.client
import json
import os
import platform
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from penstock import __version__
from penstock.cli.arguments import add_app, command
from penstock.cli.machine.checkup import check_up
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.cli.status.overview import look
from penstock.core.drawing.text import draw_text
from penstock.core.settings.keys import shown
from penstock.core.settings.masking import names_secret, without_secrets
from penstock.core.settings.settings import Secret
from penstock.errors import ConfigurationError, PenstockError
from penstock.machine.ports import LOOPBACK
from penstock.machine.process.registry import Registry

__all__ = ["Cleaner", "register"]

_LOG_BYTES = 256 << 10
"""So much of the end of each log is taken."""
_MOST_LOGS = 100
_ASK_SECONDS = 5.0
_MOST_BYTES = 16 << 20
_SHORTEST_SECRET = 4
"""A value that is shorter is not looked for in texts: it would be found everywhere."""
_ASKED = ("now", "history", "happened", "topics", "groups")


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write; default: a name with the time",
    )
    command(parser, _bundle)


def _bundle(session: Session) -> None:
    at = datetime.now(UTC)
    path: Path = session.arguments.output or Path(f"penstock-bundle-{at:%Y%m%d-%H%M%S}.zip")
    clean = Cleaner(_secrets(session))
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            path.chmod(0o600)
            for name, text in _members(session, at):
                archive.writestr(name, clean(text))
                session.terminal.note(f"  {name}")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}",
            code="bundle.write",
            hint="choose another file: --output FILE",
        ) from error
    session.terminal.line(shortened(path))
    session.terminal.note("look through it before you send it: logs and reasons may quote records")


class Cleaner:
    """Takes out of a text what looks like a secret, and every secret that is known."""

    def __init__(self, secrets: set[str]) -> None:
        written = secrets | {json.dumps(each)[1:-1] for each in secrets}
        # The longest first: one may be a part of another.
        self._known = sorted(written, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self._known:
            text = text.replace(secret, "***")
        return without_secrets(text)


def _members(session: Session, at: datetime) -> Iterator[tuple[str, str]]:
    """Yield the files of the bundle; what cannot be told says why."""
    loaded = session.loaded
    makers: dict[str, Callable[[], str]] = {
        "about.json": lambda: _json(
            {
                "penstock": __version__,
                "python": sys.version,
                "platform": platform.platform(),
                "at": at,
            }
        ),
        "doctor.json": lambda: _json(list(check_up(lambda: loaded))),
        "settings.json": lambda: _json(_settings(session)),
        "graph.txt": lambda: draw_text(session.application.graph),
        "status.json": lambda: _json(look(Registry(loaded.places.runs)).document()),
    }
    for name, make in makers.items():
        yield name, _told(make)
    for entry in Registry(loaded.places.runs).entries():
        for question in _ASKED:
            yield f"runs/{entry.pid}/{question}.json", _ask(entry.port, question)
    for path in sorted(loaded.places.logs.glob("*.log"))[:_MOST_LOGS]:
        yield f"logs/{path.name}", _end_of(path)


def _told(make: Callable[[], str]) -> str:
    try:
        return make()
    except PenstockError as error:
        return f"cannot be told: {error}\n"


def _settings(session: Session) -> dict[str, Any]:
    return {
        name: {"value": shown(found.value), "from": found.where}
        for name, found in session.loaded.configuration.resolved.items()
    }


def _secrets(session: Session) -> set[str]:
    """Return the values of all secrets that are known here: of settings, and of the environment."""
    found = {text for name, text in os.environ.items() if names_secret(name)}
    for resolved in session.loaded.configuration.resolved.values():
        for each in (resolved, *resolved.overrode):
            if isinstance(each.value, Secret):
                found.add(each.value.reveal())
    return {text for text in found if len(text) >= _SHORTEST_SECRET}


def _ask(port: int, question: str) -> str:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ASK_SECONDS)
    try:
        connection.request("GET", f"/v1/console/{question}")
        return connection.getresponse().read(_MOST_BYTES).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"it does not answer: {error}\n"
    finally:
        connection.close()


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError as error:
        return f"it cannot be read: {error.strerror}\n"


def _json(document: Any) -> str:
    encoded = msgspec.json.encode(document, enc_hook=str)
    return msgspec.json.format(encoded, indent=1).decode() + "\n"
