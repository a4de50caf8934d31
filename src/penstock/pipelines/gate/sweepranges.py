"""Which offsets a sweeper has to look at, and where it begins: no I/O."""

from collections.abc import Iterable, Mapping

from penstock.backbone.client.logrecord import Partition
from penstock.core.records.deadletter import Coordinates
from penstock.pipelines.checkpoint.batches import Offsets
from penstock.pipelines.gate.reading import OffsetRange

__all__ = ["behind", "is_forgotten", "ranges_to_sweep", "starting_position"]

Ends = Mapping[Partition, tuple[int, int]]
"""For each partition the first offset on the log, and the one behind the last."""


def is_forgotten(position: Offsets, ends: Ends) -> bool:
    """Return whether a partition with records has no position: nobody swept it, or it expired."""
    return any(high > low and at not in position for at, (low, high) in ends.items())


def behind(places: Iterable[Coordinates]) -> Offsets:
    """Return the offsets behind the records that letters are about.

    Letters are written in the order of each partition: all before the last was looked at.
    """
    found: Offsets = {}
    for place in places:
        at = place.topic, place.partition
        found[at] = max(found.get(at, 0), place.offset + 1)
    return found


def starting_position(position: Offsets, ends: Ends, after: Mapping[Partition, int]) -> Offsets:
    """Return where to begin: not before the log, and not before ``after``."""
    return position | {
        at: max(low, position.get(at, 0), after.get(at, 0)) for at, (low, _) in ends.items()
    }


def ranges_to_sweep(
    position: Offsets, start: Offsets, end: Offsets, *, rejected: bool
) -> Mapping[str, OffsetRange]:
    """Return by topic the offsets to look at because of a batch from ``start`` to ``end``.

    None where no row of the batch was refused, unless an earlier batch was not looked at.
    """
    skipped = any(position.get(at, 0) < offset for at, offset in start.items())
    found: dict[str, dict[int, tuple[int, int]]] = {}
    if rejected or skipped:
        for at, offset in end.items():
            topic, number = at
            if offset > position.get(at, 0):
                found.setdefault(topic, {})[number] = (position.get(at, 0), offset)
    return found
