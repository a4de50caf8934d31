"""What a running source or sink reports, every second, also while it waits for Kafka."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Literal, Self

from penstock.core.status.rates import Rates
from penstock.core.status.report import Counts, PartReport, PartState
from penstock.errors import PenstockError
from penstock.machine.process.whereabouts import whereabouts

__all__ = ["Progress"]

_REPORT_SECONDS = 1.0
_PATIENCE_SECONDS = 3.0
"""One that has waited this long for Kafka says so."""


class Progress:
    """The counts and the state of one source or sink, reported from a thread of its own.

    One thread counts, the reporting thread reads: each count is replaced as a whole, so every
    report is balanced. As a context manager it reports "starting" first and "stopped" or "failed"
    last.
    """

    def __init__(
        self,
        part: str,
        report: Callable[[PartReport], None],
        *,
        kind: Literal["source", "sink"] = "source",
        clock: Callable[[], float] = time.time,
        slow_call: timedelta = timedelta(seconds=30),
    ) -> None:
        self._part = part
        self._report = report
        self._kind: Literal["source", "sink"] = kind
        self._clock = clock
        self._counts = Counts()
        self._state: PartState = "starting"
        self._reason = ""
        self._waiting_since: float | None = None
        self._slow_seconds = slow_call.total_seconds()
        self._in_hand: tuple[float, int] | None = None
        self._thread_at_work = 0
        self._complaint = ""
        self._detail: dict[str, str] = {}
        self._rates = Rates(clock())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"report-{part}", daemon=True)

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

    def running(self) -> None:
        """Say that all is well."""
        self._state, self._reason = "running", ""

    def degraded(self, reason: str) -> None:
        """Say that it does not go on, and why."""
        self._state, self._reason = "degraded", reason

    def ended(self, reason: str) -> None:
        """Say why there is no more to come."""
        self._reason = reason

    def tell(self, fact: str, text: str) -> None:
        """Show a fact in the reports that follow."""
        self._detail = {**self._detail, fact: text}

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

    def snapshot(self) -> PartReport:
        """Return the report of this moment; rates are those since the last one."""
        now, counts = self._clock(), self._counts
        rate_in, rate_out = self._rates.since_last(counts, at=now)
        state, reason = self._condition(now)
        return PartReport(
            part=self._part,
            kind=self._kind,
            state=state,
            reason=reason,
            at=now,
            counts=counts,
            rate_in=rate_in,
            rate_out=rate_out,
            detail=self._detail,
        )

    def __enter__(self) -> Self:
        self._report(self.snapshot())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._waiting_since = self._in_hand = None
        self._state = "failed" if error else "stopped"
        if error:
            self._reason = error.message if isinstance(error, PenstockError) else repr(error)
        self._report(self.snapshot())

    def _run(self) -> None:
        while not self._done.wait(_REPORT_SECONDS):
            self._report(self.snapshot())

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

    def _count(self, **changes: int) -> None:
        counts = self._counts
        self._counts = Counts(
            received=counts.received + changes.get("received", 0),
            passed=counts.passed + changes.get("passed", 0),
            filtered=counts.filtered + changes.get("filtered", 0),
            dead_lettered=counts.dead_lettered + changes.get("dead_lettered", 0),
            in_flight=counts.in_flight + changes.get("in_flight", 0),
            written=counts.written + changes.get("written", 0),
        )
