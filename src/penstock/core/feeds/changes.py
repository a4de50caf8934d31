"""The changes of a result: what one write caused, and several writes squashed.

A squashed batch has at most one event for each object. It is the difference between two results:
first everything that left or moved goes out, then everything that came or moved goes in, by
ascending index. What neither left nor moved stands in the same order in both, so this is exact.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

__all__ = ["FeedChange", "FeedEvent", "encode_events", "squash"]

_OVERHEAD = 200
"""What an event costs in memory besides its document, roughly."""


class FeedEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of one object; it is encoded as clients get it."""

    what: str
    document: msgspec.Raw
    operation: str = ""
    index: int | None = None


@dataclass(frozen=True)
class FeedChange:
    """What one write changed in a result."""

    after: int
    """The number of the change before it."""
    number: int
    events: tuple[tuple[bytes, FeedEvent], ...]
    """The identity of each object, and what became of it."""
    positions: Mapping[str, int]

    @cached_property
    def size(self) -> int:
        """How much memory it costs, roughly; its encoded form included."""
        held = sum(2 * len(memoryview(each.document)) + len(key) for key, each in self.events)
        return held + _OVERHEAD * (1 + len(self.events))

    @cached_property
    def encoded(self) -> msgspec.Raw:
        """Its events as JSON, the same for all who are told."""
        return encode_events([event for _, event in self.events])


@dataclass(slots=True)
class _Seen:
    """What became of one object in several changes."""

    first: FeedEvent
    last: FeedEvent
    moved: bool

    @property
    def was_there(self) -> bool:
        return self.first.what != "add"

    @property
    def is_there(self) -> bool:
        return self.last.what != "remove"


def encode_events(events: Sequence[FeedEvent]) -> msgspec.Raw:
    """Return events as JSON."""
    return msgspec.Raw(msgspec.json.encode(events))


def squash(
    changes: Iterable[FeedChange], *, place: Callable[[bytes], int | None]
) -> Sequence[FeedEvent]:
    """Return one event for each object that changed; ``place`` tells where it stands at the end."""
    seen: dict[bytes, _Seen] = {}
    for change in changes:
        for key, event in change.events:
            moved = event.what != "change"
            if (found := seen.get(key)) is None:
                seen[key] = _Seen(event, event, moved)
            else:
                found.last = event
                found.moved = found.moved or moved
    gone: list[FeedEvent] = []
    stayed: list[FeedEvent] = []
    came: list[FeedEvent] = []
    for key, each in seen.items():
        last = each.last
        if not each.is_there:
            if each.was_there:
                gone.append(FeedEvent("remove", last.document, last.operation))
            continue
        index = place(key)
        what = "add" if not each.was_there else "changeIndex" if each.moved else "change"
        if what == "changeIndex" and index is None:
            what = "change"
        event = FeedEvent(what, last.document, last.operation, index)
        (stayed if what == "change" else came).append(event)
    came.sort(key=lambda event: -1 if event.index is None else event.index)
    return [*gone, *stayed, *came]
