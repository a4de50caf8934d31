"""Whether values still come as they did in training: the population stability index.

The values of training are cut into parts of equal size. The index compares the share of each part
then and now: below 0.1 hardly anything changed, above 0.25 a model should be trained anew. These
are the usual limits of this index.
"""

from bisect import bisect_right
from collections.abc import Iterable
from math import isfinite, log

from penstock.core.records.record import record

__all__ = ["DRIFTED", "Drift", "Reference", "reference_of"]

DRIFTED = 0.25
"""From this index on the values are others than in training."""

_LEAST_SHARE = 1e-4
"""Stands for a part without values, whose share would make the index endless."""
_PARTS = 10
_FADED = 2


@record()
class Reference:
    """How values were in training: where the parts are divided, and the share of each.

    It is a record type, so that it can be part of the parameters of a model.

    Examples:
        >>> from penstock.models import Reference, reference_of
        >>> reference_of([0.0, 1.0], parts=2) == Reference([1.0], [0.5, 0.5])
        True
    """

    bounds: list[float]
    shares: list[float]


def reference_of(values: Iterable[float], *, parts: int = _PARTS) -> Reference:
    """Return how values are, in parts of about equal size.

    Values that are equal are in one part, so there may be fewer. It raises a ValueError without any
    value, or for one that is not finite.

    Examples:
        >>> from penstock.models import reference_of
        >>> reference_of([1.0, 2.0, 3.0, 4.0], parts=2)
        Reference(bounds=[3.0], shares=[0.5, 0.5])
    """
    ordered = sorted(values)
    if not ordered or not all(isfinite(value) for value in ordered):
        raise ValueError("a reference is made of one value at least, and of finite ones")
    cuts = {ordered[len(ordered) * number // parts] for number in range(1, parts)}
    bounds = sorted(cut for cut in cuts if cut > ordered[0])
    counts = [0] * (len(bounds) + 1)
    for value in ordered:
        counts[bisect_right(bounds, value)] += 1
    return Reference(bounds, [count / len(ordered) for count in counts])


class Drift:
    """Compares the newest values with a reference; older ones fade.

    After every ``window`` values the counts are halved, so about the last two windows count.
    ``counts`` is its whole state: plain numbers, to be kept where the application keeps state.

    Examples:
        >>> from penstock.models import Drift, reference_of
        >>> drift = Drift(reference_of(range(1_000)), window=100)
        >>> for value in range(900, 1_000):
        ...     drift.see(value)
        >>> drift.drifted
        True
    """

    def __init__(
        self, reference: Reference, *, window: int = 1_000, counts: list[float] | None = None
    ) -> None:
        self._reference = reference
        self._window = window
        self.counts = counts or [0.0] * len(reference.shares)
        """How many values are in each part, older ones counted less."""

    def see(self, value: float) -> None:
        """Take note of a value."""
        self.counts[bisect_right(self._reference.bounds, value)] += 1
        if sum(self.counts) >= _FADED * self._window:
            self.counts = [count / _FADED for count in self.counts]

    @property
    def index(self) -> float:
        """The population stability index; 0 before there are enough values to say."""
        seen = sum(self.counts)
        if seen < self._window:
            return 0.0
        total = 0.0
        for count, share in zip(self.counts, self._reference.shares, strict=True):
            now, then = max(count / seen, _LEAST_SHARE), max(share, _LEAST_SHARE)
            total += (now - then) * log(now / then)
        return total

    @property
    def drifted(self) -> bool:
        """Whether the values differ from those of the training."""
        return self.index >= DRIFTED
