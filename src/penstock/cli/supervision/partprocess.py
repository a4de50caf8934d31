"""One process of ``penstock dev``: ``penstock run`` as a child, its reports read as they come."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from penstock.cli.session import Session
from penstock.cli.supervision.plan import Unit
from penstock.core.printable import printable
from penstock.core.status.report import PartReport, decode_report
from penstock.machine.files import last_lines
from penstock.machine.process.child import Child

__all__ = ["PartProcess", "exit_text", "run_command"]

_ERROR = "error: "
_LOG_LINES = 40
_REASON_CHARACTERS = 300


class PartProcess:
    """The process of one unit. It ends when this process ends, however that ends."""

    def __init__(self, child: Child) -> None:
        self._child = child

    @classmethod
    def start(cls, unit: Unit, *, session: Session, take: Callable[[PartReport], None]) -> Self:
        """Start the process; ``take`` gets its reports, from a thread."""

        def read(line: bytes) -> None:
            try:
                report = decode_report(line)
            except msgspec.MsgspecError:
                return  # a line that is no report comes from a program that a part has started
            take(report)

        piped = set(session.arguments.also) & set(unit.parts)
        child = Child(
            run_command(session, unit.parts),
            log=session.loaded.places.logs / f"{unit.name}.log",
            on_line=read,
            stdin=sys.stdin.fileno() if piped else subprocess.DEVNULL,
            bounds=session.loaded.settings.logs,
        )
        return cls(child.start())

    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._child.poll()

    def reason(self) -> str:
        """Return why it ended, from its log if that has an error."""
        return exit_text(self._child.poll(), last_lines(self._child.log, count=_LOG_LINES))

    def terminate(self) -> None:
        """Ask it to end cleanly."""
        if self._child.poll() is None:
            os.kill(self._child.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and everything it started, at once."""
        self._child.kill()


def run_command(session: Session, parts: Sequence[str]) -> list[str]:
    """Return the command that runs parts with the configuration of this run."""
    arguments = session.arguments
    # -P: a file of the project must not stand in for a module of Python. Its log has tracebacks.
    words = [sys.executable, "-P", "-m", "penstock.cli", "--debug"]
    if arguments.config is not None:
        words += ["--config", str(arguments.config)]
    if arguments.profile is not None:
        words += ["--profile", arguments.profile]
    for key, value in arguments.settings:
        words += ["--set", f"{key}={value}"]
    # Whoever supervises tells of all of them; their own pages would meet on one port.
    words += ["--set", "http.port=0"]
    words += ["run", arguments.app, "--report-json"]
    return words + [word for part in parts for word in ("--part", part)]


def exit_text(code: int | None, log: Sequence[str]) -> str:
    """Return why a process ended: the signal, or the last error in its log."""
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    at = max((at for at, line in enumerate(log) if line.startswith(_ERROR)), default=None)
    if at is None:
        text = log[-1].strip() if log else "nothing in its log"
    else:
        # The line below the error says where and why, unless it is the hint already.
        below = log[at + 1].strip() if at + 1 < len(log) and log[at + 1].startswith("  ") else ""
        why = f": {below}" if below and not below.startswith("hint:") else ""
        text = f"{log[at].removeprefix(_ERROR)}{why}"
    return f"exit code {code}: {printable(text, most=_REASON_CHARACTERS)}"
