"""Find the processes of one run, however they were started and whoever their parent is now."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["Traces", "wait_for"]


class Traces:
    """Everything that runs with a mark in its environment or a directory on its command line."""

    def __init__(self, *, mark: str, directory: Path) -> None:
        self._words = (mark.encode(), str(directory).encode())

    def find(self, *containing: str, program: str = "") -> dict[int, str]:
        """Return process ids and command lines of the run's processes that hold these texts.

        ``program`` is the name of what runs, for commands that only mention it.
        """
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                line, environment = (
                    (entry / "cmdline").read_bytes(),
                    (entry / "environ").read_bytes(),
                )
            except OSError:  # it has ended
                continue
            if not line or not any(word in line or word in environment for word in self._words):
                continue
            text = line.replace(b"\0", b" ").decode(errors="replace")
            runs = Path(text.split(" ", 1)[0]).name.startswith(program)
            if runs and all(word in text for word in containing):
                found[int(entry.name)] = text
        return found

    def kill(self, *containing: str, program: str = "") -> int:
        """Kill what :meth:`find` finds; return how many there were."""
        found = self.find(*containing, program=program)
        for pid in found:
            with suppress(ProcessLookupError):  # it may have ended by itself meanwhile
                os.kill(pid, signal.SIGKILL)
        return len(found)


def wait_for(what: str, seconds: float, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; say what did not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.2)
