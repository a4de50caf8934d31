"""Services that do not stop: what each is doing, as words for whoever has to mend it."""

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import PurePath
from sysconfig import get_paths
from traceback import FrameSummary, extract_stack
from typing import Protocol

from penstock.core.units import span_text
from penstock.errors import StuckError

__all__ = ["STOP_GRACE", "Busy", "stuck_error"]

STOP_GRACE = timedelta(seconds=5)
"""What services get beyond their own time to stop; less than any supervisor gives them."""

_PACKAGE = str(PurePath(__file__).parent.parent)
_LIBRARIES = tuple({get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Busy(Protocol):
    """What is known of a worker while it works."""

    @property
    def service(self) -> str:
        """Return the name of its service."""

    @property
    def thread(self) -> int:
        """Return the thread it works in."""

    @property
    def handling(self) -> str:
        """Return the records in hand, in words; empty: none are."""


def stuck_error(
    workers: Sequence[Busy], *, limit: timedelta, failed: BaseException | None = None
) -> StuckError:
    """Return the error that says what workers are doing which had to stop within ``limit``.

    ``failed`` is why they had to, where one of them had failed.
    """
    names = ", ".join(worker.service for worker in workers)
    lines = [f"{worker.service} {_doing(worker)}" for worker in workers]
    if failed is not None:
        lines.append(f"they had to stop because of this: {failed}")
    return StuckError(
        f"{names} did not stop within {span_text(limit.total_seconds())}",
        code="service.stuck",
        detail="\n  ".join(lines),
        hint="give calls that wait a timeout; what was not committed is done again by the next run",
    )


def _doing(worker: Busy) -> str:
    frame = sys._current_frames().get(worker.thread)  # noqa: SLF001 - the documented way
    if frame is None:
        return "is about to end"
    at = _telling(extract_stack(frame))
    where = f"is at {PurePath(at.filename).name}:{at.lineno}, in {at.name}"
    return f"{where}, with {worker.handling}" if worker.handling else where


def _telling(frames: Sequence[FrameSummary]) -> FrameSummary:
    """Return the innermost frame of the user's own code, else of a library's, else of ours."""
    outside = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    own = [frame for frame in outside if not frame.filename.startswith(_LIBRARIES)]
    # Every thread begins in the standard library: that says nothing of where it is.
    inner = outside if frames[-1] in outside else frames
    return (own or inner)[-1]
