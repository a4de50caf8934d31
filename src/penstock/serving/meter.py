"""What a gateway counts, and its reports, every second, from a thread of its own."""

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
    """Counts the records and the answers of a gateway; reports while the block runs.

    The event loop counts, the reporting thread reads. ``received == passed + filtered + in
    flight``: what is refused counts as filtered, because the caller has it back.
    """

    def __init__(
        self, part: str, report: Callable[[PartReport], None], *, clock: Callable[[], float]
    ) -> None:
        self._part = part
        self._report = report
        self._clock = clock
        self._counts = Counts()
        self._state: PartState = "starting"
        self._reason = ""
        self._detail: dict[str, str] = {}
        self._metrics: dict[str, float] = {}
        self._rates = Rates(clock())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"report-{part}", daemon=True)

    def took(self, records: int) -> None:
        """Count records as received and in flight."""
        self._count(received=records, in_flight=records)

    def settled(self, *, passed: int = 0, refused: int = 0) -> None:
        """Count records in flight as acknowledged, or as refused."""
        self._count(passed=passed, filtered=refused, in_flight=-passed - refused, written=passed)

    def undone(self, records: int) -> None:
        """Forget records in flight: their callers were told that nobody knows."""
        if records:
            self._count(received=-records, in_flight=-records)

    def running(self) -> None:
        """Say that all is well."""
        self._state, self._reason = "running", ""

    def degraded(self, reason: str) -> None:
        """Say what it does not do, and why."""
        self._state, self._reason = "degraded", reason

    @property
    def trouble(self) -> str:
        """Return why it is not well; empty: it is."""
        if self._state == "starting":
            return "it is starting"
        return self._reason if self._state == "degraded" else ""

    def tell(self, fact: str, text: str) -> None:
        """Show a fact in the reports that follow."""
        self._detail = {**self._detail, fact: text}

    def snapshot(self) -> PartReport:
        """Return the report of this moment; rates are those since the last one."""
        now, counts = self._clock(), self._counts
        rate_in, rate_out = self._rates.since_last(counts, at=now)
        return PartReport(
            part=self._part,
            kind="gateway",
            state=self._state,
            reason=self._reason,
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
        self._state = "failed" if error else "stopped"
        self._reason = ""
        if error:
            self._reason = error.message if isinstance(error, PenstockError) else repr(error)
        self._report(self.snapshot())

    def _run(self) -> None:
        while not self._done.wait(_REPORT_SECONDS):
            self._report(self.snapshot())

    def _count(
        self,
        *,
        received: int = 0,
        passed: int = 0,
        filtered: int = 0,
        in_flight: int = 0,
        written: int = 0,
    ) -> None:
        counts = self._counts
        self._counts = Counts(
            received=counts.received + received,
            passed=counts.passed + passed,
            filtered=counts.filtered + filtered,
            in_flight=counts.in_flight + in_flight,
            written=counts.written + written,
        )
