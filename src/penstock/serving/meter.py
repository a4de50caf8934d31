"""What a gateway counts."""

from collections.abc import Callable

from penstock.backbone.meter import Meter as PartMeter
from penstock.core.status.report import PartReport

__all__ = ["Meter"]


class Meter(PartMeter):
    """Counts the records and the answers of a gateway; the event loop counts.

    ``received == passed + filtered + dead-lettered + in flight``: what is refused counts as
    filtered, because the caller has it back. A dead letter is an answer that no webhook took.
    """

    def __init__(
        self, part: str, report: Callable[[PartReport], None], *, clock: Callable[[], float]
    ) -> None:
        super().__init__(part, report, kind="gateway", clock=clock)

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

    def buried(self, answers: int, last: str) -> None:
        """Count answers that have become dead letters; ``last`` is the last of them in words."""
        self._count(received=answers, dead_lettered=answers)
        self.tell("last dead letter", last)

    @property
    def trouble(self) -> str:
        """Return why it is not well; empty: it is."""
        if self._state == "starting":
            return "it is starting"
        return self._reason if self._state == "degraded" else ""
