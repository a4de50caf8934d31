"""A range of a topic as offsets: what is to be read of each partition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.backbone.client.failures import beyond_end
from penstock.backbone.topics.range import Earliest, End, Instant, Last, Latest, Offset, Start
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError

__all__ = ["Ends", "Span", "chosen", "settled_range", "starts", "stops"]

Ends: TypeAlias = Mapping[int, tuple[int, int]]
"""For each partition its first offset and the next one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of one partition from ``start`` up to, not including, ``end``; None: no end."""

    start: int
    end: int | None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.end is not None and self.start >= self.end


def settled_range(
    topics: Topics, topic: str, *, start: Start, end: End, ends: Ends | None = None
) -> dict[int, tuple[int, int]]:
    """Return a range as offsets, from which to which, for each partition.

    It has what is on the log now; ``ends`` says what that is, if it is known already.
    """
    ends = topics.ends(topic, committed=True) if ends is None else ends
    first = starts(topics, topic, start=start, ends=ends)
    last = stops(topics, topic, end=end, ends=ends, follow=False)
    found = {}
    for number, (low, high) in ends.items():
        begin = max(low, first.get(number, high))
        found[number] = (begin, max(begin, last[number] or 0))
    return found


def chosen(topic: str, ends: Ends, partitions: Sequence[int] | None) -> Ends:
    """Return the ends of the partitions that are asked for; all of them for None."""
    if partitions is None:
        return ends
    if unknown := sorted(set(partitions) - set(ends)):
        raise ConfigurationError(
            f"{topic} has no partition {', '.join(map(str, unknown))}",
            code="partition.missing",
            detail=f"its partitions are 0 to {len(ends) - 1}",
            hint=f"penstock topics describe {topic}",
        )
    return {number: ends[number] for number in partitions}


def starts(topics: Topics, topic: str, *, start: Start, ends: Ends) -> dict[int, int]:
    """Return where reading starts; a partition for which no offset is given is not read.

    The last records of a partition are counted in offsets, which may hold no record.
    """
    match start:
        case Last():
            return {number: max(low, high - start.count) for number, (low, high) in ends.items()}
        case Earliest():
            return {number: low for number, (low, _) in ends.items()}
        case Latest():
            return {number: high for number, (_, high) in ends.items()}
        case Instant():
            found = topics.offsets_at(topic, start.at)
            # What is at the instant may belong to a transaction that has not ended.
            return {number: min(found[number], high) for number, (_, high) in ends.items()}
        case Offset():
            given = {number: start.of(number) for number in ends}
            wanted = {number: offset for number, offset in given.items() if offset is not None}
            for number, offset in wanted.items():
                if offset > ends[number][1]:
                    raise beyond_end((topic, number), wanted=offset, high=ends[number][1])
            return wanted


def stops(
    topics: Topics, topic: str, *, end: End | None, ends: Ends, follow: bool
) -> dict[int, int | None]:
    """Return where reading stops: never later than the log ends now, unless it is followed."""
    wanted: dict[int, int | None]
    match end:
        case None:
            wanted = dict.fromkeys(ends)
        case Latest():
            wanted = {number: high for number, (_, high) in ends.items()}
        case Offset():
            wanted = {number: end.of(number) for number in ends}
        case Instant():
            if follow:
                raise ConfigurationError(
                    "cannot follow a range that ends at an instant: records may come late",
                    code="range.open-instant",
                )
            wanted = dict(topics.offsets_at(topic, end.at))
    if follow:
        return wanted
    return {
        number: high if (at := wanted[number]) is None else min(at, high)
        for number, (_, high) in ends.items()
    }
