"""What became of records, as the meter of the gateway counts it."""

from collections import Counter
from collections.abc import Sequence

from penstock.serving.meter import Meter
from penstock.serving.writing.intake import Outcome, Stand
from penstock.serving.writing.parsing import Mistake

__all__ = ["settle"]


def settle(meter: Meter, outcomes: Sequence[Outcome]) -> None:
    """Count what became of records in flight: on the log, refused, or nobody knows."""
    if len(outcomes) == 1 and type(outcomes[0]) is Stand:
        meter.settled(passed=1)
        return
    kinds = Counter(map(type, outcomes))
    passed, refused = kinds[Stand], kinds[Mistake]
    meter.settled(passed=passed, refused=refused)
    meter.undone(len(outcomes) - passed - refused)
