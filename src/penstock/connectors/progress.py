"""What a running source or sink reports, every second, also while it waits for Kafka."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Literal

from penstock.backbone.meter import Meter
from penstock.core.status.report import PartReport, PartState
from penstock.machine.process.whereabouts import whereabouts

__all__ = ["Progress"]

_PATIENCE_SECONDS = 3.0
"""One that has waited this long for Kafka says so."""


class Progress(Meter):
    """The counts and the state of one source or sink, and where the user's code is."""

    def __init__(
        self,
        part: str,
        report: Callable[[PartReport], None],
        *,
        kind: Literal["source", "sink"] = "source",
        clock: Callable[[], float] = time.time,
        slow_call: timedelta = timedelta(seconds=30),
    ) -> None:
        super().__init__(part, report, kind=kind, clock=clock)
        self._waiting_since: float | None = None
        self._slow_seconds = slow_call.total_seconds()
        self._in_hand: tuple[float, int] | None = None
        self._thread_at_work = 0
        self._complaint = ""

    def took(self, items: int) -> None:
        """Count items as received and in flight."""
        self._count(received=items, in_flight=items)

    def settled(self, *, passed: int, filtered: int, dead_lettered: int) -> None:
        """Count items in flight as done; a record or a dead letter of each is on the log."""
        total = passed + filtered + dead_lettered
        self._count(
            passed=passed,
            filtered=filtered,
            dead_lettered=dead_lettered,
            in_flight=-total,
            written=passed,
        )

    def undone(self) -> None:
        """Forget the items in flight: they will be read again."""
        self._count(received=-self._counts.in_flight, in_flight=-self._counts.in_flight)

    def forget(self, items: int) -> None:
        """Forget some of the items in flight: they will be read again."""
        self._count(received=-items, in_flight=-items)

    def ended(self, reason: str) -> None:
        """Say why there is no more to come."""
        self._reason = reason

    def complain(self, trouble: str) -> None:
        """Say why items do not get in; empty: they do."""
        self._complaint = trouble

    def begin(self, item: int) -> None:
        """Take note that the user's code is about to be given the item at this place."""
        self._in_hand = (self._clock(), item)
        self._thread_at_work = threading.get_ident()

    def finish(self) -> None:
        """Take note that the user's code is done with its items."""
        self._in_hand = None

    @property
    def in_hand(self) -> str:
        """Return where the user's code is, and with which item, in words; empty: nowhere."""
        if (in_hand := self._in_hand) is None:
            return ""
        since, item = in_hand
        since_at = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
        at = whereabouts(self._thread_at_work) or "an unknown place"
        return f"{self._part} is at {at}, with item {item}, since {since_at}"

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark a wait for Kafka; one that is long is reported as degraded."""
        self._waiting_since = self._clock()
        try:
            yield
        finally:
            self._waiting_since = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._waiting_since = self._in_hand = None
        super().__exit__(kind, error, trace)

    def _condition(self, now: float) -> tuple[PartState, str]:
        since = self._waiting_since
        if self._state == "running" and since is not None and now - since > _PATIENCE_SECONDS:
            return "degraded", f"waiting for Kafka for {now - since:.0f}s"
        in_hand = self._in_hand
        if in_hand is not None and now - in_hand[0] > self._slow_seconds:
            return "degraded", self.in_hand
        if self._state == "running" and self._complaint:
            return "degraded", self._complaint
        return self._state, self._reason
