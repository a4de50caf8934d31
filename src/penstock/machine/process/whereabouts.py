"""Describe where a thread is now, for the person who must fix what it waits for."""

import sys
from collections.abc import Sequence
from pathlib import PurePath
from sysconfig import get_paths
from traceback import FrameSummary, extract_stack

from penstock.core.place import is_penstocks

__all__ = ["whereabouts"]

_LIBRARIES = tuple({get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def whereabouts(thread: int) -> str:
    """Return the line of the user's code that a thread is at, or of a library, or of Penstock.

    For example ``app.py:12, in parse``. Empty if the thread has ended.
    """
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way
    if frame is None:
        return ""
    at = _telling(extract_stack(frame))
    return f"{PurePath(at.filename).name}:{at.lineno}, in {at.name}"


def _telling(frames: Sequence[FrameSummary]) -> FrameSummary:
    outside = [frame for frame in frames if not is_penstocks(frame.filename)]
    own = [frame for frame in outside if not frame.filename.startswith(_LIBRARIES)]
    # Every thread begins in the standard library: that says nothing of where it is.
    inner = outside if frames[-1] in outside else frames
    return (own or inner)[-1]
