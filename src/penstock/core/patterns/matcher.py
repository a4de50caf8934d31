"""The matching of one key, record by record: pure, and the same however it is stopped and resumed.

A record that cannot be tested, or that would begin too much, leaves the state as it was: a
DataError says why, and the record counts as if it had not come.
"""

from __future__ import annotations

from typing import Any

from penstock.core.panes.times import NEVER
from penstock.core.patterns.automaton import Automaton, Point, Thread
from penstock.core.patterns.begun import Begun, KeyState, Link, Match
from penstock.core.patterns.conditions import Values, compiled_tests, fold
from penstock.core.patterns.events import Event
from penstock.core.patterns.plan import PatternPlan
from penstock.core.patterns.skipping import release
from penstock.errors import DataError

__all__ = ["Failed", "Matcher"]

Failed = tuple[Event, DataError]
"""A match that may not be, as its declaration says: its last record, and why."""


class Matcher:
    """Finds the matches of a pattern; it holds nothing but what was compiled."""

    def __init__(self, plan: PatternPlan) -> None:
        self.automaton = Automaton(plan)
        self._plan = plan
        self._tests = compiled_tests(plan)
        self._fold = fold(plan.taken, plan)
        self._asks = bool(plan.taken)
        self._within = NEVER if plan.within is None else plan.within
        self.values_of = self._fold.of if self._asks else _no_values

    def process(self, state: KeyState, event: Event) -> tuple[list[Match], list[Failed]]:
        """Take the next record of the key, in order; return what that makes known."""
        matches: list[Match] = []
        failed: list[Failed] = []
        if state.deadline <= event.time:
            self._expire_until(state, event.time, matches, failed)
        look = _Look(self, event)
        fresh = [(each, look.at(each, fresh=True)) for each in state.fresh]
        seen: list[tuple[Point, list[tuple[Begun, int]]]] = []
        for point, found in state.waiting.items():
            if look.matters(point):
                seen.append((point, [(each, look.at(each, fresh=False)) for each in found]))
        look.begin()
        most = self._plan.most_begun
        if look.begun and state.count() + len(look.begun) > most and look.grows(state) > most:
            raise self._too_many()
        self._settle(state, look, fresh, seen)
        self._found(state, look.matches, matches, failed)
        return matches, failed

    def advance(self, state: KeyState, time: int) -> tuple[list[Match], list[Failed]]:
        """Let event time come to a time that no record before is missing for any more."""
        matches: list[Match] = []
        failed: list[Failed] = []
        if state.deadline <= time:
            self._expire_until(state, time, matches, failed)
        return matches, failed

    def begun(self, last: Link, first: Event, point: Point, values: Values) -> Begun:
        """Return a begun match after its newest record."""
        deadline = NEVER
        if point.limited:
            since = last.event.time if self._plan.gap else first.time
            deadline = min(NEVER, since + self._within)
        return Begun(
            point,
            last,
            first,
            alive=point.everything,
            deadline=deadline,
            values=values,
            reported=point.complete,
        )

    def _settle(
        self,
        state: KeyState,
        look: _Look,
        fresh: list[tuple[Begun, int]],
        seen: list[tuple[Point, list[tuple[Begun, int]]]],
    ) -> None:
        """Make what was seen the state: from here on nothing fails."""
        waiting = state.waiting
        for point, found in seen:
            left = []
            for each, alive in found:
                if alive:
                    each.alive = alive
                    left.append(each)
            if left:
                waiting[point] = left
            else:
                del waiting[point]
        for each, alive in fresh:
            if alive:
                each.alive = alive
                waiting.setdefault(each.point, []).append(each)
        state.fresh = [each for each in look.begun if each.alive]
        for each in look.reported:
            each.reported = True
        for each in state.fresh:
            state.deadline = min(state.deadline, each.deadline)

    def _found(
        self, state: KeyState, found: list[Match], matches: list[Match], failed: list[Failed]
    ) -> None:
        if self._plan.skipping is None:
            matches += found
        elif found or state.held:
            state.held += found
            release(state, self._plan.skipping, matches, failed)

    def _expire_until(
        self, state: KeyState, time: int, matches: list[Match], failed: list[Failed]
    ) -> None:
        while state.deadline <= time:
            due = min((each.deadline for each in state.begun()), default=NEVER)
            if due > time:
                state.deadline = due
                return
            found = self._expire(state, due)
            matches += (match for match in found if match.kind == "time-out")
            self._found(state, [each for each in found if each.kind == "match"], matches, failed)

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
        for number, thread in enumerate(begun.point.threads):
            if thread.kind == "absence" and begun.alive >> number & 1:
                begun.reported = True
                found.append(Match(begun.last, begun.deadline))
        left = begun.alive & ~begun.point.limited
        if not left and self._plan.timeouts and not begun.reported:
            found.append(Match(begun.last, begun.deadline, "time-out"))
        begun.alive, begun.deadline = left, NEVER
        return bool(left)

    def _too_many(self) -> DataError:
        most = self._plan.most_begun
        return DataError(
            f"its key has {most} begun matches, and this record would begin more",
            code="pattern.too-many",
            hint="a shorter within, a narrower condition, after_match, or a larger most_begun",
        )

    def fits(self, test: int, event: Event, found: dict[int, bool], values: Values) -> bool:
        """Return whether a record fits a test; what does not depend on steps is tested once."""
        known = found.get(test)
        if known is not None:
            return known
        number, holds, asks = self._tests[test]
        if number != event.input:
            known = False
        elif holds is None:
            known = True
        elif asks:
            return bool(holds(event.record, values))
        else:
            known = holds(event.record)
        found[test] = known
        return known

    def taken(self, values: Values, step: int, record: Any) -> Values:
        """Return what steps have taken, with one more record."""
        return self._fold.add(values, step, record) if self._asks else values

    @property
    def nothing(self) -> Values:
        """What steps have taken before the first record."""
        return self._fold.nothing


class _Look:
    """One record against everything that was begun; nothing is changed yet."""

    __slots__ = ("_event", "_found", "_matcher", "begun", "ended", "matches", "reported")

    def __init__(self, matcher: Matcher, event: Event) -> None:
        self.begun: list[Begun] = []
        self.matches: list[Match] = []
        self.reported: list[Begun] = []
        """What was a match as it stood, which the record has shown."""
        self.ended = 0
        self._matcher = matcher
        self._event = event
        self._found: dict[int, bool] = {}

    def matters(self, point: Point) -> bool:
        """Return whether the record may mean anything to what waits at a point."""
        if point.asks:
            return True
        fits, event, found = self._matcher.fits, self._event, self._found
        return any(fits(test, event, found, ()) for test in point.watched)

    def grows(self, state: KeyState) -> int:
        """Return how much is begun if the record is taken."""
        return state.count() - self.ended + sum(1 for each in self.begun if each.alive)

    def begin(self) -> None:
        """Begin with the record where it fits a first step."""
        matcher = self._matcher
        values = matcher.nothing
        taken = 0
        for number, thread in enumerate(matcher.automaton.start.threads):
            if thread.blockers & taken or not self._fits(thread.test, values):
                continue
            if thread.passes and self._fits_any(thread.passes, values):
                continue
            taken |= 1 << number
            self._take(thread, None, values)

    def at(self, begun: Begun, *, fresh: bool) -> int:
        """Return the threads of a begun match that wait on."""
        left = begun.alive
        values = begun.values
        taken = 0
        for number, thread in enumerate(begun.point.threads):
            bit = 1 << number
            if not left & bit:
                continue
            if thread.blockers & taken or (
                fresh and thread.forbids_next and self._fits_any(thread.forbids_next, values)
            ):
                left &= ~bit
            elif thread.kind == "take":
                took, stays = self._wait(thread, values)
                if took:
                    taken |= bit
                    self._take(thread, begun, values)
                if not stays:
                    left &= ~bit
            elif thread.forbids and self._fits_any(thread.forbids, values):
                left &= ~bit
            elif thread.kind == "not-next":
                left &= ~bit
                self.reported.append(begun)
                self.matches.append(Match(begun.last, self._event.time))
        if not left:
            self.ended += 1
        return left

    def _wait(self, thread: Thread, values: Values) -> tuple[bool, bool]:
        """Return whether a step takes the record, and whether it waits for others too."""
        if thread.stops and self._fits_any(thread.stops, values):
            return False, False
        took = fits = self._fits(thread.test, values)
        if fits and thread.passes and self._fits_any(thread.passes, values):
            took = False
        stays = thread.any or not (fits or thread.strict)
        if stays and thread.forbids and self._fits_any(thread.forbids, values):
            stays = False
        return took, stays

    def _take(self, thread: Thread, before: Begun | None, values: Values) -> None:
        matcher, event = self._matcher, self._event
        last = Link(event, thread.step, None if before is None else before.last)
        values = matcher.taken(values, thread.step, event.record)
        point = matcher.automaton.after(thread.position)
        self.begun.append(
            matcher.begun(last, event if before is None else before.first, point, values)
        )
        if point.complete:
            self.matches.append(Match(last, event.time))

    def _fits(self, test: int, values: Values) -> bool:
        return self._matcher.fits(test, self._event, self._found, values)

    def _fits_any(self, tests: tuple[int, ...], values: Values) -> bool:
        return any(self._matcher.fits(test, self._event, self._found, values) for test in tests)


def _no_values(_path: Any) -> Values:
    return ()
