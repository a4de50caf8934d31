"""What a running part counts, and its reports, every second, from a thread of its own."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from penstock.core.status.rates import Rates
from penstock.core.status.report import Counts, PartReport, PartState
from penstock.errors import PenstockError

__all__ = ["Meter"]

_REPORT_SECONDS = 1.0


class Meter:
    """Counts the records of one part, and reports while the block runs.

    One thread counts, the reporting thread reads: each count is replaced as a whole, so every
    report is balanced. It reports "starting" first and "stopped" or "failed" last.
    """

    def __init__(
        self,
        part: str,
        report: Callable[[PartReport], None],
        *,
        kind: str,
        clock: Callable[[], float],
    ) -> None:
        self._part = part
        self._report = report
        self._kind = kind
        self._clock = clock
        self._counts = Counts()
        self._state: PartState = "starting"
        self._reason = ""
        self._detail: dict[str, str] = {}
        self._rates = Rates(clock())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"report-{part}", daemon=True)

    def running(self) -> None:
        """Say that all is well."""
        self._state, self._reason = "running", ""

    def degraded(self, reason: str) -> None:
        """Say what it does not do, and why."""
        self._state, self._reason = "degraded", reason

    def tell(self, fact: str, text: str) -> None:
        """Show a fact in the reports that follow."""
        self._detail = {**self._detail, fact: text}

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
        if self._state == "degraded":
            self._reason = ""
        self._state = "failed" if error else "stopped"
        if error:
            self._reason = error.message if isinstance(error, PenstockError) else repr(error)
        self._report(self.snapshot())

    def _run(self) -> None:
        while not self._done.wait(_REPORT_SECONDS):
            self._report(self.snapshot())

    def _condition(self, now: float) -> tuple[PartState, str]:  # noqa: ARG002 - for those it is a base of
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
