"""A program that lives as long as somebody owns it: the owners' side of ``keeper.py``."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from penstock.machine.locks import FileLock
from penstock.machine.process import keeper
from penstock.machine.process.processes import command_line, wait_until_dead

__all__ = ["KeptProgram"]

_LAUNCH_LIMIT = timedelta(seconds=15)
_ORPHAN_LIMIT = timedelta(seconds=5)
_SETTLE_LIMIT = timedelta(seconds=10)
_POLL_SECONDS = 0.05


class KeptProgram:
    """One program with a directory of its own, started by one owner and shared by many.

    Starting is for one owner at a time: callers serialise ``start`` and ``stop`` with a lock.
    ``output.log`` in the directory has what the program writes to its standard streams.
    """

    def __init__(self, directory: Path, *, grace: timedelta) -> None:
        self.directory = directory
        self._grace = grace
        self._owners = FileLock(directory / "owners.lock")
        self._keeper = FileLock(directory / "keeper.lock")

    @property
    def output(self) -> Path:
        """The file with what the program wrote to its standard streams since it started."""
        return self.directory / "output.log"

    @property
    def owned(self) -> bool:
        """Whether this object is one of the owners."""
        return self._owners.held

    def own(self, *, timeout: timedelta) -> bool:
        """Become an owner; waits for a stop under way. Return whether that succeeded."""
        return self.owned or self._owners.wait(timeout=timeout, shared=True)

    def owned_by_others(self) -> bool:
        """Whether there are owners besides this one; only while the program does not run.

        A running program's keeper would take the moment of looking for the end of ownership.
        """
        self._owners.release()
        alone = self._owners.acquire()
        self._owners.release()
        if not self._owners.wait(timeout=_SETTLE_LIMIT, shared=True):
            raise TimeoutError(f"{self.directory} was taken over while it was inspected")
        return not alone

    def running(self) -> bool:
        """Whether the program runs."""
        return self._keeper.is_taken()

    def pid(self) -> int | None:
        """Return the program's process id while it runs."""
        return self._state().get("program") if self.running() else None

    def start(self, command: Sequence[str], *, environment: Mapping[str, str]) -> bool:
        """Start the program, which must not run; return whether it could be started."""
        self.end_orphan()
        # -I: neither the caller's directory nor its environment decides what the keeper imports.
        arguments = [sys.executable, "-I", keeper.__file__]
        arguments += [str(self.directory), str(self._grace.total_seconds()), *command]
        self.output.write_bytes(b"")
        # Appending: the keeper empties it when it has grown too large.
        with self.output.open("ab") as output:
            launch = subprocess.run(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                start_new_session=True,
                timeout=_LAUNCH_LIMIT.total_seconds(),
                check=False,
            )
        return launch.returncode == 0

    def end_orphan(self) -> None:
        """End a program whose keeper was killed; Linux does so itself, a moment later."""
        pid = self._state().get("program")
        if pid is None or self.running() or str(self.directory) not in command_line(pid):
            return
        os.kill(pid, signal.SIGKILL)
        wait_until_dead(pid, timeout=_ORPHAN_LIMIT)

    def disown(self) -> bool:
        """Give up ownership; return whether this was the last owner, so the program stops.

        The keeper notices by itself; ``wait_until_stopped`` waits for what it does.
        """
        if not self.owned:
            return False
        self._owners.release()
        deadline = time.monotonic() + _SETTLE_LIMIT.total_seconds()
        while self.running() and time.monotonic() < deadline:
            if self._owners.acquire():  # nobody owns it, and the keeper will see that
                self._owners.release()
                return True
            if self._owners.acquire(shared=True):  # others do
                self._owners.release()
                return False
            time.sleep(_POLL_SECONDS)  # the keeper has seen it already
        return True

    def wait_until_stopped(self, *, timeout: timedelta) -> bool:
        """Wait until the program has ended and its keeper too; return whether that came."""
        deadline = time.monotonic() + timeout.total_seconds()
        while self.running():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _state(self) -> dict[str, int]:
        try:
            state = json.loads((self.directory / "keeper.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}
