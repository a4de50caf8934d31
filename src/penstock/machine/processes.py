"""Other processes, by their number: whether they live, what they run, and ending them."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

__all__ = ["command_line", "end_group", "group_is_alive", "is_alive", "wait_until_dead"]

_LINUX: bool = sys.platform == "linux"
_POLL_SECONDS = 0.02
_PS_SECONDS = 5


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent's notice does not."""
    if _LINUX:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
    return command_line(pid) != ""


def command_line(pid: int) -> str:
    """Return the command line of a process; nothing if there is no such process."""
    if _LINUX:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").replace("\0", " ")
        except OSError:
            return ""
    answer = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        timeout=_PS_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return answer.stdout.strip()


def wait_until_dead(pid: int, *, timeout: timedelta) -> bool:
    """Wait for the end of a process that need not be a child; return whether it came."""
    deadline = time.monotonic() + timeout.total_seconds()
    while is_alive(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def group_is_alive(group: int) -> bool:
    """Whether a process group has any process, also one that only waits for its notice."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, of another user
        return True
    return True


def end_group(group: int, *, number: signal.Signals) -> None:
    """Send a signal to every process of a group, if there is any left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
