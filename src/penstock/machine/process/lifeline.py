"""The lifeline of a child process: a pipe whose other end its parent holds while it lives.

The kernel closes the parent's end when the parent dies, also by SIGKILL; the child reads the end
of the pipe and stops. On Linux one that is suspended then (SIGSTOP) is woken to do so.
"""

import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

from penstock.machine.process.processes import session_members

__all__ = ["LIFELINE_VARIABLE", "watch_lifeline"]

LIFELINE_VARIABLE = "PENSTOCK_LIFELINE_FD"
_GRACE = timedelta(seconds=10)
_EXIT_STATUS = 70
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)


def watch_lifeline(
    on_lost: Callable[[], None], *, grace: timedelta = _GRACE
) -> threading.Thread | None:
    """Call ``on_lost`` when the parent dies; end this process if it still runs after ``grace``.

    ``on_lost`` runs in a thread of its own and asks the process to stop. At the end of ``grace``
    the process is killed with all of its session, if it leads one. Call it once. In a process that
    no :class:`~penstock.machine.process.child.Child` started it does nothing and returns None.
    """
    text = os.environ.pop(LIFELINE_VARIABLE, "")
    if not text.isdecimal():
        return None
    descriptor = int(text)
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - not ours to name
    _wake_when_orphaned()

    def watch() -> None:
        _wait_for_end(descriptor)
        try:
            on_lost()
        except Exception:  # noqa: BLE001 - whatever it was, this process has to end
            _LOG.exception("the request to stop failed after the parent was lost")
        threading.Event().wait(grace.total_seconds())
        _end()

    thread = threading.Thread(target=watch, name="lifeline", daemon=True)
    thread.start()
    return thread


def _wake_when_orphaned() -> None:
    """Ask Linux to let this process go on when its parent dies, should it be suspended then."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def _end() -> None:
    own = os.getpid()
    if os.getsid(own) == own:
        for pid in session_members(own):
            if pid != own:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        os.killpg(own, signal.SIGKILL)
    os._exit(_EXIT_STATUS)


def _wait_for_end(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1):
            pass
    except OSError:
        _LOG.exception("the lifeline cannot be read; the parent counts as lost")
