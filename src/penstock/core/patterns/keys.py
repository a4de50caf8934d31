"""The records of one key on their way through the matching: some wait, some are looked at again.

Final results: a record is matched once, when it is further behind the watermark than any that may
still come. Early results: it is matched when the watermark passes it. Until nothing late can change
them any more, the records and the results that followed are kept: a late record is put among them,
they are matched anew, and what differs is withdrawn or added.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any, NamedTuple

from penstock.core.operators.operator import Arrival
from penstock.core.panes.times import END, NEVER
from penstock.core.patterns.begun import KeyState, Match, pack_state, unpack_state
from penstock.core.patterns.events import Event, EventCodec
from penstock.core.patterns.matcher import Failed, Matcher
from penstock.core.patterns.plan import PatternPlan
from penstock.errors import DataError

__all__ = ["Found", "Key", "Matching"]

_order = attrgetter("order")


class Found(NamedTuple):
    """What matching gave."""

    withdrawn: list[Match]
    matches: list[Match]
    failed: list[Failed]


class Key:
    """Everything that is kept of one key."""

    __slots__ = ("ahead", "base", "came", "front", "given", "listed", "log", "state")

    def __init__(self) -> None:
        self.state = KeyState()
        self.ahead: list[Event] = []
        """Records that were not matched yet."""
        self.came = 0
        """How many records have come: they are told apart by it."""
        self.listed = NEVER
        """The watermark that it is listed to wait for."""
        self.base: KeyState | None = None
        """The state before the log; None: there is nothing that may change."""
        self.log: list[Event] = []
        self.given: list[Match] = []
        """What the records of the log gave."""
        self.front = -NEVER
        """The time up to which they were matched."""

    @property
    def empty(self) -> bool:
        """Whether nothing has to be kept."""
        state = self.state
        return self.base is None and not (self.ahead or state.fresh or state.waiting or state.held)


class Matching:
    """Takes keys up to a watermark; it holds nothing but what was compiled."""

    def __init__(self, plan: PatternPlan) -> None:
        self._plan = plan
        self._matcher = Matcher(plan)
        self._codec = EventCodec(plan.inputs)
        self._early = plan.early and plan.lateness > 0
        self._behind = 0 if self._early else plan.lateness

    def add(self, key: Key, arrival: Arrival) -> None:
        """Keep a record until its turn."""
        key.ahead.append(Event((arrival.time, arrival.input, key.came), arrival))
        key.came += 1

    def go_on(self, key: Key, watermark: int) -> Found:
        """Match everything that the watermark allows."""
        front = watermark if watermark >= END else watermark - self._behind
        found = Found([], [], [])
        if len(key.ahead) > 1:
            key.ahead.sort(key=_order)
        if self._early:
            self._match_again(key, found)
        count = 0
        for event in key.ahead:
            if event.time >= front:
                break
            count += 1
            self._match(key, event, found)
        if count:
            del key.ahead[:count]
        if key.state.deadline <= front:
            matches, failed = self._matcher.advance(key.state, front)
            found.matches.extend(matches)
            found.failed.extend(failed)
            key.given += matches if self._early else ()
        if self._early:
            key.front = front
            self._settle(key, watermark)
        return found

    def due(self, key: Key) -> int:
        """Return the watermark from which on there is something to do."""
        due = key.state.deadline
        if key.ahead:
            due = min(due, min(key.ahead[0].time, key.ahead[-1].time) + 1)
        due = min(NEVER, due + self._behind)
        if key.base is not None:
            first = key.log[0].time + 1 if key.log else NEVER
            due = min(due, min(first, key.base.deadline) + self._plan.lateness)
        return due

    def pack(self, key: Key) -> list[Any]:
        """Return a key as plain data."""
        state = key.state if key.base is None else key.base
        kept = [key.came, key.listed, pack_state(state, self._codec), self._events(key.ahead)]
        return [*kept, key.front, self._events(key.log)] if self._early else kept

    def unpack(self, kept: list[Any]) -> Key:
        """Return the key that plain data holds."""
        key = Key()
        came, listed, state, ahead, *rest = kept
        key.came, key.listed = came, listed
        matcher = self._matcher
        key.state = unpack_state(state, self._codec, matcher.automaton, matcher.values_of)
        key.ahead = [self._codec.unpack(each) for each in ahead]
        if rest:
            key.front, log = rest
            key.log = [self._codec.unpack(each) for each in log]
            key.base = key.state
            self._replay(key, Found([], [], []))
        return key

    def _events(self, events: list[Event]) -> list[Any]:
        return [event.pack(self._codec) for event in events]

    def _match(self, key: Key, event: Event, found: Found) -> None:
        if self._early and key.base is None:
            key.base = key.state.copy()
        try:
            matches, failed = self._matcher.process(key.state, event)
        except DataError as error:
            found.failed.append((event, error))
            return
        found.matches.extend(matches)
        found.failed.extend(failed)
        if self._early:
            key.log.append(event)
            key.given += matches

    def _match_again(self, key: Key, found: Found) -> None:
        """Put late records among those that were matched, and say what that changes."""
        late = [event for event in key.ahead if event.time < key.front]
        if not late:
            return
        key.ahead = key.ahead[len(late) :]
        if key.base is None:
            key.base = key.state.copy()
        key.log = sorted([*key.log, *late], key=_order)
        before = key.given
        self._replay(key, found)
        was = Counter(_same(match) for match in before)
        now = Counter(_same(match) for match in key.given)
        found.withdrawn.extend(_more(before, was - now))
        found.matches.extend(_more(key.given, now - was))

    def _replay(self, key: Key, found: Found) -> None:
        """Match the log anew, from the state before it."""
        log, key.log, key.given = key.log, [], []
        key.state = KeyState() if key.base is None else key.base.copy()
        again = Found([], [], found.failed)
        for event in log:
            self._match(key, event, again)
        matches, _ = self._matcher.advance(key.state, key.front)
        key.given += matches

    def _settle(self, key: Key, watermark: int) -> None:
        """Forget how it came to what no late record can change any more."""
        base = key.base
        until = watermark if watermark >= END else watermark - self._plan.lateness
        if base is None or not (base.deadline <= until or (key.log and key.log[0].time < until)):
            return
        settled: list[Match] = []
        count = 0
        for event in key.log:
            if event.time >= until:
                break
            count += 1
            settled += self._matcher.process(base, event)[0]
        settled += self._matcher.advance(base, until)[0]
        del key.log[:count]
        gone = Counter(_same(match) for match in settled)
        key.given = _more(key.given, Counter(_same(match) for match in key.given) - gone)
        if not (key.log or key.given or base.count()):
            key.base = None


def _same(match: Match) -> tuple[Any, ...]:
    path = tuple((link.event.order, link.step) for link in match.path())
    return path, match.kind, match.time


def _more(matches: list[Match], wanted: Counter[tuple[Any, ...]]) -> list[Match]:
    found = []
    for match in matches:
        if wanted[_same(match)] > 0:
            wanted[_same(match)] -= 1
            found.append(match)
    return found
