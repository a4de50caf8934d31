"""The records of one key on their way through the matching: some wait, some are looked at again.

Final results: a record is matched once, when it is further behind the watermark than any that may
still come. Early results: it is matched when the watermark passes it. Until nothing late can change
them any more, the records and the results that followed are kept: a late record is put among them,
they are matched anew, and what differs is withdrawn or added.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any

from penstock.core.operators.operator import Arrival, ResultKind
from penstock.core.panes.times import END, NEVER
from penstock.core.patterns.matches.begun import KeyState, Match, pack_state, unpack_state
from penstock.core.patterns.matches.events import EventCodec, PatternEvent
from penstock.core.patterns.matches.matcher import Failed, Matcher
from penstock.core.patterns.planned import PlannedPattern
from penstock.errors import DataError

__all__ = ["EarlyKey", "Found", "Key", "Matching"]

_order = attrgetter("order")


class Found:
    """What matching gave, in order."""

    __slots__ = ("failed", "results")

    def __init__(self) -> None:
        self.results: list[tuple[Match, ResultKind]] = []
        self.failed: list[Failed] = []

    def add(self, matches: list[Match], change: ResultKind = "add") -> None:
        """Keep matches, or say that they do not hold."""
        self.results += [(match, change) for match in matches]


class Key:
    """Everything that is kept of one key."""

    __slots__ = ("ahead", "came", "listed", "soonest", "state", "waited")

    def __init__(self) -> None:
        self.state = KeyState()
        self.ahead: list[PatternEvent] = []
        """Records that were not matched yet."""
        self.soonest = NEVER
        """The earliest event time among them."""
        self.waited = False
        """Whether there were any when it was last looked at."""
        self.came = 0
        """How many records have come: they are told apart by it."""
        self.listed = NEVER
        """The watermark that it is listed to wait for."""

    @property
    def empty(self) -> bool:
        """Whether nothing has to be kept."""
        state = self.state
        return not (self.ahead or state.fresh or state.waiting or state.held)


class EarlyKey(Key):
    """A key whose results may still change, with what they came from."""

    __slots__ = ("base", "front", "given", "log")

    def __init__(self) -> None:
        super().__init__()
        self.base: KeyState | None = None
        """The state before the log; None: there is nothing that may change."""
        self.log: list[PatternEvent] = []
        """Records that were matched already, in order."""
        self.given: list[Match] = []
        """What they gave."""
        self.front = -NEVER
        """The time up to which they were matched."""

    @property
    def empty(self) -> bool:
        """Whether nothing has to be kept."""
        return self.base is None and super().empty


class Matching:
    """Takes keys up to a watermark; it holds nothing but what was compiled."""

    def __init__(self, plan: PlannedPattern) -> None:
        self._plan = plan
        self._matcher = Matcher(plan)
        self._codec = EventCodec(plan.inputs)
        self._early = plan.early and plan.lateness > 0
        self._behind = 0 if self._early else plan.lateness

    def new(self) -> Key:
        """Return a key that nothing came for yet."""
        return EarlyKey() if self._early else Key()

    def add(self, key: Key, arrival: Arrival) -> None:
        """Keep a record until its turn."""
        time = arrival.time
        key.ahead.append(PatternEvent((time, arrival.input, key.came), arrival))
        key.came += 1
        key.soonest = min(key.soonest, time)

    def go_on(self, key: Key, watermark: int, found: Found) -> bool:
        """Match everything that the watermark allows; return whether the key has changed."""
        if len(key.ahead) > 1:
            key.ahead.sort(key=_order)
        front = watermark if watermark >= END else watermark - self._behind
        matches: list[Match] = []
        if isinstance(key, EarlyKey):
            changed = True
            self._match_again(key, found)
            while key.ahead and key.ahead[0].time < front:
                self._match(key, key.ahead.pop(0), matches, found)
        else:
            changed = self._take(key, front, matches, found) or key.waited
        if key.state.deadline <= front:
            found.failed += self._matcher.advance(key.state, front, matches)
            changed = True
        if matches:
            found.add(matches)
        key.waited = bool(key.ahead)
        key.soonest = key.ahead[0].time if key.ahead else NEVER
        if isinstance(key, EarlyKey):
            key.given += matches
            key.front = front
            self._settle(key, watermark)
        return changed or key.waited

    def _take(self, key: Key, front: int, matches: list[Match], found: Found) -> bool:
        """Match the records whose turn it is; return whether that has changed anything."""
        process, state = self._matcher.process, key.state
        count, changed = 0, False
        for event in key.ahead:
            if event.time >= front:
                break
            count += 1
            try:
                failed = process(state, event, matches)
            except DataError as error:
                found.failed.append((event, error))
                continue
            if failed is not None:
                changed = True
                found.failed += failed
        if count:
            del key.ahead[:count]
        return changed

    def due(self, key: Key) -> int:
        """Return the watermark from which on there is something to do."""
        due = min(key.soonest + 1, key.state.deadline) + self._behind
        if isinstance(key, EarlyKey) and key.base is not None:
            first = key.log[0].time + 1 if key.log else NEVER
            due = min(due, min(first, key.base.deadline) + self._plan.lateness)
        return due

    def pack(self, key: Key) -> list[Any]:
        """Return a key as plain data."""
        state = key.base if isinstance(key, EarlyKey) and key.base is not None else key.state
        kept = [key.came, key.listed, pack_state(state, self._codec), self._events(key.ahead)]
        if isinstance(key, EarlyKey):
            kept += [key.front, self._events(key.log)]
        return kept

    def unpack(self, kept: list[Any]) -> Key:
        """Return the key that plain data holds."""
        key = self.new()
        key.came, key.listed, state, ahead, *rest = kept
        matcher = self._matcher
        key.state = unpack_state(state, self._codec, matcher.automaton, matcher.values_of)
        key.ahead = [self._codec.unpack(each) for each in ahead]
        key.soonest = min((each.time for each in key.ahead), default=NEVER)
        key.waited = bool(ahead)
        if isinstance(key, EarlyKey):
            key.front, log = rest
            key.log = [self._codec.unpack(each) for each in log]
            key.base = key.state
            self._replay(key, Found())
        return key

    def _events(self, events: list[PatternEvent]) -> list[Any]:
        return [self._codec.pack(event) for event in events]

    def _match(
        self, key: EarlyKey, event: PatternEvent, matches: list[Match], found: Found
    ) -> None:
        """Match one record, and keep it to be matched anew."""
        if key.base is None:
            key.base = key.state.copy()
        try:
            failed = self._matcher.process(key.state, event, matches)
        except DataError as error:
            found.failed.append((event, error))
            return
        key.log.append(event)
        found.failed += failed or ()

    def _match_again(self, key: EarlyKey, found: Found) -> None:
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
        found.add(_more(before, was - now), "withdraw")
        found.add(_more(key.given, now - was))

    def _replay(self, key: EarlyKey, found: Found) -> None:
        """Match the log anew, from the state before it."""
        log, key.log, key.given = key.log, [], []
        key.state = KeyState() if key.base is None else key.base.copy()
        for event in log:
            self._match(key, event, key.given, found)
        self._matcher.advance(key.state, key.front, key.given)

    def _settle(self, key: EarlyKey, watermark: int) -> None:
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
            self._matcher.process(base, event, settled)
        self._matcher.advance(base, until, settled)
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
