"""Other processes by their id: whether they run, their command line, and how to kill them."""

import contextlib
import os
import signal
import time
from datetime import timedelta

import psutil

__all__ = ["command_line", "end_session", "is_alive", "session_members", "wait_until_dead"]

_POLL_SECONDS = 0.02


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.AccessDenied:  # another user's
        return True
    except psutil.NoSuchProcess:
        return False


def command_line(pid: int) -> str:
    """Return the command line of a process; empty if there is no such process."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


def wait_until_dead(pid: int, *, timeout: timedelta) -> bool:
    """Wait for any process to end, child or not; return whether it ended in time."""
    deadline = time.monotonic() + timeout.total_seconds()
    while is_alive(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def session_members(session: int) -> list[int]:
    """Return the running processes of a session.

    Programs put their children into groups of their own, but hardly ever into new sessions.
    """
    return [pid for pid in psutil.pids() if _session_of(pid) == session and is_alive(pid)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):  # it has just ended, or is another user's
        return None


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
