"""What a service does that neither stops nor gets on, as words for whoever has to mend it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Protocol

from penstock.core.units import span_text
from penstock.errors import StuckError
from penstock.machine.process.whereabouts import whereabouts

__all__ = ["STOP_GRACE", "Busy", "slow_call", "stuck_error"]

STOP_GRACE = timedelta(seconds=5)
"""What services get beyond their own time to stop; less than any supervisor gives them."""


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

    @property
    def busy_since(self) -> float | None:
        """Return since when it has been busy with them, by the monotonic clock."""


def slow_call(worker: Busy, *, limit: timedelta) -> str:
    """Return what a worker has been doing for longer than ``limit``; empty: it gets on."""
    since = worker.busy_since
    if since is None or (seconds := monotonic() - since) < limit.total_seconds():
        return ""
    since_at = datetime.now(UTC) - timedelta(seconds=seconds)
    text = f"{worker.service} {_doing(worker)}"
    return f"{text}, since {since_at.isoformat(timespec='seconds')}"


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
    if not (at := whereabouts(worker.thread)):
        return "is about to end"
    return f"is at {at}, with {worker.handling}" if worker.handling else f"is at {at}"
