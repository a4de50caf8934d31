"""Other processes, by their number: whether they live, what they run, and ending them."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

__all__ = ["command_line", "end_session", "is_alive", "session_members", "wait_until_dead"]

_LINUX: bool = sys.platform == "linux"
_POLL_SECONDS = 0.02
_PS_SECONDS = 5


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent's notice does not."""
    if _LINUX:
        return _state_and_session(Path(f"/proc/{pid}"))[0] not in ("Z", "X")
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


def session_members(session: int) -> list[int]:
    """Return the processes of a session that run; where that cannot be asked, of the group.

    A program may put what it starts into a group of its own, but hardly ever into a session.
    """
    if not _LINUX:
        return [session] if command_line(session) else []
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            state, its_session = _state_and_session(entry)
            if its_session == session and state not in ("Z", "X"):
                members.append(int(entry.name))
    return members


def _state_and_session(entry: Path) -> tuple[str, int]:
    try:
        stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return "X", -1
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[3])


def end_session(session: int, *, timeout: timedelta) -> bool:
    """Kill every process of a session; return whether all are gone in time.

    The caller must know that the session is its own: one whose leader it has started.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        for send, number in [(os.killpg, session)] + [
            (os.kill, pid) for pid in session_members(session)
        ]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(number, signal.SIGKILL)
        if not session_members(session):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
