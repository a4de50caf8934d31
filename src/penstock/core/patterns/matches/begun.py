"""The state of one key: begun matches, each at its point, and matches that are held back.

Begun matches share their records: each record that was taken is a link to the one before it, so
that a thousand matches that begin alike keep their beginning once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush
from typing import Any, Literal, NamedTuple

from penstock.core.panes.times import NEVER
from penstock.core.patterns.matches.automaton import Automaton, Point
from penstock.core.patterns.matches.events import EventCodec, Order, PatternEvent

__all__ = ["Begun", "KeyState", "Link", "Match", "pack_state", "unpack_state"]


Place = tuple[Order, Order, int, list[tuple[Order, int]]]
"""First record, last record, the longer first."""


class Link(NamedTuple):
    """A record that was taken, by which step, after which other one."""

    event: PatternEvent
    step: int
    before: Link | None


class Match(NamedTuple):
    """What was found: a match, or a begun one whose time is over."""

    last: Link
    time: int
    kind: Literal["match", "time-out"] = "match"

    def path(self) -> list[Link]:
        """Return its records, the first one first."""
        return path_of(self.last)

    def place(self) -> Place:
        """Return what matches are ordered by; where all is equal, by their records and steps."""
        path = [(link.event.order, link.step) for link in self.path()]
        return path[0][0], path[-1][0], -len(path), path


class Begun:
    """A begun match."""

    __slots__ = ("alive", "deadline", "first", "last", "point", "reported", "values")

    def __init__(
        self, point: Point, last: Link, first: PatternEvent, deadline: int, values: tuple[Any, ...]
    ) -> None:
        self.point = point
        self.last = last
        self.first = first
        self.alive = point.everything
        """The threads that still wait, as bits."""
        self.deadline = deadline
        """The time at which those of them that are limited end."""
        self.values = values
        """What its steps have taken, as conditions ask for it."""
        self.reported = point.complete
        """Whether it is a match as it stands."""

    def copy(self) -> Begun:
        """Return the same to go on with apart."""
        copied = Begun(self.point, self.last, self.first, self.deadline, self.values)
        copied.alive, copied.reported = self.alive, self.reported
        return copied


@dataclass(slots=True)
class KeyState:
    """Everything that was begun for one key."""

    fresh: list[Begun] = field(default_factory=list)
    """Those whose last record is the newest: for them the next one is the very next one."""
    waiting: dict[Point, list[Begun]] = field(default_factory=dict)
    held: list[tuple[Place, Match]] = field(default_factory=list)
    """Matches that an earlier begun one may discard, as a heap."""
    deadline: int = NEVER
    """The first time at which something ends, or an earlier one."""

    size: int = 0
    """How many begun and held matches there are, or more."""

    def begun(self) -> Iterator[Begun]:
        """Yield everything that was begun."""
        yield from self.fresh
        for each in self.waiting.values():
            yield from each

    def count(self) -> int:
        """Return how many begun and held matches there are."""
        return len(self.fresh) + sum(map(len, self.waiting.values())) + len(self.held)

    def copy(self) -> KeyState:
        """Return the same to go on with apart."""
        return KeyState(
            [each.copy() for each in self.fresh],
            {point: [each.copy() for each in found] for point, found in self.waiting.items()},
            list(self.held),
            self.deadline,
            self.size,
        )


def path_of(last: Link) -> list[Link]:
    """Return linked records, the first one first."""
    found = []
    link: Link | None = last
    while link is not None:
        found.append(link)
        link = link.before
    return found[::-1]


def pack_state(state: KeyState, codec: EventCodec) -> list[Any]:
    """Return the state of a key as plain data, each record and each link in it once."""
    kept = _Kept(codec)
    # The newest last: a large state begins as it did at the last commit, so that is not written.
    waiting = [_row(each, kept) for found in state.waiting.values() for each in found]
    fresh = [_row(each, kept) for each in state.fresh]
    held = [(kept.place(match.last), match.time, match.kind) for _, match in state.held]
    return [kept.events, kept.links, fresh, waiting, held, state.deadline]


class _Kept:
    """Records and links in the order in which they are kept."""

    __slots__ = ("_codec", "_events", "_places", "events", "links")

    def __init__(self, codec: EventCodec) -> None:
        self.events: list[Any] = []
        self.links: list[tuple[int, int, int]] = []
        self._codec = codec
        self._events: dict[int, int] = {}
        self._places: dict[int, int] = {}

    def place(self, last: Link) -> int:
        """Return where a link is, after keeping it and all before it."""
        places = self._places
        if (found := places.get(id(last))) is not None:
            return found
        new: list[Link] = []
        link = last[2]
        before = -1
        while link is not None:
            if (found := places.get(id(link))) is not None:
                before = found
                break
            new.append(link)
            link = link[2]
        while new:
            before = self._keep(new.pop(), before)
        return self._keep(last, before)

    def _keep(self, link: Link, before: int) -> int:
        event, step, _ = link
        number = self._events.get(id(event))
        if number is None:
            number = self._events[id(event)] = len(self.events)
            self.events.append(event.kept or self._codec.pack(event))
        place = self._places[id(link)] = len(self.links)
        self.links.append((number, step, before))
        return place


def _row(begun: Begun, kept: _Kept) -> tuple[Any, ...]:
    place = kept.place(begun.last)
    return (begun.point.position, place, begun.alive, begun.deadline, begun.reported)


def unpack_state(kept: list[Any], codec: EventCodec, automaton: Automaton, values: Any) -> KeyState:
    """Return the state that plain data holds; ``values`` gives what a path comes to."""
    kept_events, kept_links, fresh, waiting, held, deadline = kept
    events = [codec.unpack(each) for each in kept_events]
    links: list[Link] = []
    for event, step, before in kept_links:
        links.append(Link(events[event], step, None if before < 0 else links[before]))

    def begun(row: list[Any]) -> Begun:
        position, place, alive, deadline, reported = row
        path = path_of(links[place])
        point = automaton.after(tuple((index, times) for index, times in position))
        found = Begun(point, links[place], path[0].event, deadline, values(path))
        found.alive, found.reported = alive, reported
        return found

    state = KeyState([begun(row) for row in fresh], deadline=deadline)
    for row in waiting:
        found = begun(row)
        state.waiting.setdefault(found.point, []).append(found)
    for place, time, kind in held:
        match = Match(links[place], time, kind)
        heappush(state.held, (match.place(), match))
    state.size = state.count()
    return state
