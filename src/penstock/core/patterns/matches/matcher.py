"""The matching of one key, record by record: pure, and the same however it is stopped and resumed.

A record that cannot be tested, or that would begin too much, leaves the state as it was: a
DataError says why, and the record counts as if it had not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush
from typing import Any

from penstock.core.panes.times import NEVER
from penstock.core.patterns.matches.automaton import Automaton, Point, Thread
from penstock.core.patterns.matches.begun import Begun, KeyState, Link, Match
from penstock.core.patterns.matches.conditions import Conditions, Values, fold
from penstock.core.patterns.matches.events import PatternEvent
from penstock.core.patterns.matches.skipping import release
from penstock.core.patterns.planned import PlannedPattern
from penstock.errors import DataError

__all__ = ["Failed", "Matcher"]

Failed = tuple[PatternEvent, DataError]
"""A match that may not be, as its declaration says: its last record, and why."""


class Matcher:
    """Finds the matches of a pattern; it holds nothing but what was compiled."""

    def __init__(self, plan: PlannedPattern) -> None:
        self.automaton = Automaton(plan)
        self.conditions = Conditions(plan)
        self._plan = plan
        self._start = self.automaton.start
        self.nothing = fold(plan.taken, plan).nothing
        """What steps have taken before the first record."""
        self._fold = fold(plan.taken, plan)
        self._asks = bool(plan.taken)
        self._most = plan.most_begun
        self._gap = plan.gap
        self._within = NEVER if plan.within is None else plan.within
        self.values_of = self._fold.of if self._asks else _no_values
        """What a path comes to, as conditions ask for it."""

    def process(
        self, state: KeyState, event: PatternEvent, found: list[Match]
    ) -> list[Failed] | None:
        """Take the next record of the key, in order; None: nothing has changed.

        What it makes known is added to ``found``.
        """
        fits = self.conditions.fitting(event.input, event.record)
        failed: list[Failed] | None = None
        if state.deadline <= event.time:
            failed = []
            self._expire_until(state, event.time, found, failed)
        start = self._start
        begins = start.asks or start.watched & fits
        if not (state.fresh or begins):
            for point in state.waiting:
                if point.asks or point.watched & fits:
                    break
            else:
                return failed
        look = _Look(self, event, fits)
        if state.fresh or state.waiting:
            look.at_all(state)
        if begins:
            look.begin(start)
        if look.begun and state.size + len(look.begun) > self._most:
            state.size = state.count()
            if state.size + look.growth > self._most:
                raise self._too_many()
        look.settle(state)
        failed = failed or []
        if look.matches or state.held:
            self._found(state, look.matches, found, failed)
        return failed

    def advance(self, state: KeyState, time: int, found: list[Match]) -> list[Failed]:
        """Let event time come to a time that no record before is missing for any more."""
        failed: list[Failed] = []
        if state.deadline <= time:
            self._expire_until(state, time, found, failed)
        return failed

    def deadline(self, point: Point, last: PatternEvent, first: PatternEvent) -> int:
        """Return when what waits at a point is over, as far as it is limited."""
        if not point.limited:
            return NEVER
        return min(NEVER, (last if self._gap else first).time + self._within)

    def taken(self, values: Values, step: int, record: Any) -> Values:
        """Return what steps have taken, with one more record."""
        return self._fold.add(values, step, record) if self._asks else values

    def _found(
        self, state: KeyState, now: list[Match], found: list[Match], failed: list[Failed]
    ) -> None:
        if self._plan.skipping is None:
            found += sorted(now, key=Match.place) if len(now) > 1 else now
        elif now or state.held:
            for match in now:
                heappush(state.held, (match.place(), match))
            release(state, self._plan.skipping, found, failed)

    def _expire_until(
        self, state: KeyState, time: int, found: list[Match], failed: list[Failed]
    ) -> None:
        while state.deadline <= time:
            due = min((each.deadline for each in state.begun()), default=NEVER)
            if due > time:
                state.deadline = due
                return
            ended = self._expire(state, due)
            found += (match for match in ended if match.kind == "time-out")
            self._found(state, [each for each in ended if each.kind == "match"], found, failed)

    def _expire(self, state: KeyState, due: int) -> list[Match]:
        """End what ends at a deadline; return what that makes known."""
        found: list[Match] = []
        state.fresh = [each for each in state.fresh if self._lives_on(each, due, found)]
        for point in list(state.waiting):
            left = [each for each in state.waiting[point] if self._lives_on(each, due, found)]
            if left:
                state.waiting[point] = left
            else:
                del state.waiting[point]
        state.deadline = min((each.deadline for each in state.begun()), default=NEVER)
        return found

    def _lives_on(self, begun: Begun, due: int, found: list[Match]) -> bool:
        if begun.deadline > due:
            return True
        for bit, thread in begun.point.threads:
            if thread.kind == "absence" and begun.alive & bit:
                begun.reported = True
                found.append(Match(begun.last, begun.deadline))
        left = begun.alive & ~begun.point.limited
        if not left and self._plan.timeouts and not begun.reported:
            found.append(Match(begun.last, begun.deadline, "time-out"))
        begun.alive, begun.deadline = left, NEVER
        return bool(left)

    def _too_many(self) -> DataError:
        return DataError(
            f"its key has {self._most} begun matches, and this record would begin more",
            code="pattern.too-many",
            hint="a shorter within, a narrower condition, after_match, or a larger most_begun",
        )


class _Look:
    """One record against everything that was begun; nothing is changed until it is settled."""

    __slots__ = ("_event", "_fits", "_fresh", "_matcher", "_reported", "_seen", "begun", "matches")

    def __init__(self, matcher: Matcher, event: PatternEvent, fits: int) -> None:
        self.begun: list[Begun] = []
        self.matches: list[Match] = []
        self._matcher = matcher
        self._event = event
        self._fits = fits
        self._fresh: list[tuple[Begun, int]] | None = None
        self._seen: list[tuple[Point, list[tuple[Begun, int]]]] = []
        self._reported: list[Begun] | None = None
        """What was a match as it stood, which the record has shown."""

    def at_all(self, state: KeyState) -> None:
        """Look at everything that the record may mean something to."""
        fits = self._fits
        if state.fresh:
            self._fresh = [(each, self._at(each, fresh=True)) for each in state.fresh]
        for point, found in state.waiting.items():
            if point.asks or point.watched & fits:
                self._seen.append((point, [(each, self._at(each, fresh=False)) for each in found]))

    def begin(self, start: Point) -> None:
        """Begin with the record where it fits a first step."""
        fits, taken, values = self._fits, 0, self._matcher.nothing
        if start.asks:
            fits |= self._asked(start.asks, values)
        for bit, thread in start.threads:
            if thread.test & fits and not thread.passes & fits and not thread.blockers & taken:
                taken |= bit
                self._take(thread, None, values)

    @property
    def growth(self) -> int:
        """How much more there is begun if the record is taken."""
        seen = [self._fresh or [], *(found for _, found in self._seen)]
        return len(self.begun) - sum(1 for found in seen for _, alive in found if not alive)

    def settle(self, state: KeyState) -> None:
        """Make what was seen the state: from here on nothing fails."""
        waiting = state.waiting
        for point, found in self._seen:
            left = [each for each, alive in found if alive]
            if left:
                waiting[point] = left
            else:
                del waiting[point]
            for each, alive in found:
                each.alive = alive
        for each, alive in self._fresh or ():
            if alive:
                each.alive = alive
                if each.point in waiting:
                    waiting[each.point].append(each)
                else:
                    waiting[each.point] = [each]
        for each in self._reported or ():
            each.reported = True
        state.fresh = self.begun
        state.size += len(self.begun) + len(self.matches)
        for each in self.begun:
            state.deadline = min(state.deadline, each.deadline)

    def _at(self, begun: Begun, *, fresh: bool) -> int:
        """Return the threads of a begun match that wait on."""
        left, taken, fits = begun.alive, 0, self._fits
        point = begun.point
        if point.asks:
            fits |= self._asked(point.asks, begun.values)
        for bit, thread in point.threads:
            if not left & bit:
                continue
            if (
                thread.blockers & taken
                or thread.ends & fits
                or (fresh and thread.forbids_next & fits)
            ):
                left &= ~bit
            elif not thread.takes:
                left &= ~self._waited(bit, thread, begun)
            elif not thread.test & fits:
                if thread.strict or thread.forbids & fits:
                    left &= ~bit
            else:
                if not thread.passes & fits:
                    taken |= bit
                    self._take(thread, begun, begun.values)
                if not thread.any or thread.forbids & fits:
                    left &= ~bit
        return left

    def _waited(self, bit: int, thread: Thread, begun: Begun) -> int:
        """Return the thread if it has waited for just this: that another record comes."""
        if thread.kind != "not-next":
            return 0
        self._reported = [*(self._reported or ()), begun]
        self.matches.append(Match(begun.last, self._event.time))
        return bit

    def _take(self, thread: Thread, before: Begun | None, values: Values) -> None:
        matcher, event = self._matcher, self._event
        point = matcher.automaton.next(thread)
        values = matcher.taken(values, thread.step, event.record)
        if before is None:
            first, last = event, Link(event, thread.step, None)
        else:
            first, last = before.first, Link(event, thread.step, before.last)
        if point.everything:
            deadline = matcher.deadline(point, event, first)
            self.begun.append(Begun(point, last, first, deadline, values))
        if point.complete:
            self.matches.append(Match(last, event.time))

    def _asked(self, tests: Sequence[int], values: Values) -> int:
        event = self._event
        return self._matcher.conditions.asked(tests, event.input, event.record, values)


def _no_values(_path: Any) -> Values:
    return ()
