"""What a begun match waits for: from the place where it stands to everything that may come next.

A **point** is the place of a begun match after a record that it took: the step, and how often each
step and group around it has been repeated. From it lead **threads**, one for each step that may
take a further record; they wait independently of one another. A thread knows all there is to look
at: the test that its record must fit, what may lie between, which records end it. Points are made
when they are first reached, so a pattern costs as many as its matches have places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from penstock.core.expression.tree import Taken, walk
from penstock.core.patterns.planned import AnyPart, Body, PlannedPattern, Taker

__all__ = ["Automaton", "Point", "Position", "Thread"]

Position = tuple[tuple[int, int], ...]
"""From the outermost sequence to the step: the place in it, and the number of the repetition."""

Kind = Literal["take", "absence", "not-next"]


@dataclass(frozen=True, slots=True)
class _Crossed:
    """What was passed between the record that was taken and the step that waits."""

    forbids: tuple[int, ...] = ()
    """Tests of records that must not come before."""
    forbids_next: tuple[int, ...] = ()
    """Tests that the very next record must not fit."""
    waits: bool = False
    """Whether a negation that nothing follows must be seen to hold."""
    waits_next: bool = False
    blockers: int = 0
    """Threads that, when they take a record, end this one: greedy steps."""

    def past(self, absent: Taker) -> _Crossed:
        """Return the same with one more negation."""
        if absent.after == "strict":
            tests = (*self.forbids_next, absent.test)
            return replace(self, forbids_next=tests, waits_next=True)
        return replace(self, forbids=(*self.forbids, absent.test), waits=True)


class Thread:
    """One thing that a begun match waits for. Tests are bits: of each that a record fits, one."""

    __slots__ = (
        "any",
        "blockers",
        "ends",
        "forbids",
        "forbids_next",
        "kind",
        "limited",
        "passes",
        "point",
        "position",
        "step",
        "strict",
        "takes",
        "test",
    )

    def __init__(
        self, kind: Kind, crossed: _Crossed, *, after: str, limited: bool, position: Position
    ) -> None:
        self.kind = kind
        self.takes = kind == "take"
        self.position = position
        self.strict = after == "strict"
        self.any = after == "any"
        self.forbids = _bits(crossed.forbids)
        self.forbids_next = _bits(crossed.forbids_next)
        self.blockers = crossed.blockers
        self.limited = limited
        """Whether the time limit is about it."""
        self.test = 0
        self.ends = 0 if self.takes else self.forbids
        """Tests of records that end it, even if they fit it: its repetition has begun."""
        self.passes = 0
        """Tests of records that are never taken by a repetition which has not."""
        self.step = -1
        self.point: Point | None = None
        """Where it leads to, once it was looked up."""

    @property
    def tests(self) -> int:
        """All tests that it asks for."""
        return self.test | self.forbids | self.forbids_next | self.ends | self.passes


class Point:
    """A place in the pattern, with the threads that lead from it."""

    __slots__ = ("asks", "complete", "everything", "limited", "position", "threads", "watched")

    def __init__(
        self, position: Position, threads: tuple[Thread, ...], asking: int, *, complete: bool
    ) -> None:
        self.position = position
        self.threads = tuple((1 << number, thread) for number, thread in enumerate(threads))
        """Each with its bit."""
        self.complete = complete
        """Whether nothing more is needed."""
        self.limited = sum(bit for bit, thread in self.threads if thread.limited)
        self.everything = (1 << len(threads)) - 1
        """All its threads, as bits."""
        tests = 0
        self.watched = 0
        """Tests that decide whether a record means anything here, if it is not the very next."""
        for thread in threads:
            tests |= thread.tests
            self.watched |= thread.test | thread.forbids | thread.ends
        self.asks = tuple(_numbers(tests & asking))
        """Tests that ask for what steps have taken."""


class Automaton:
    """The points of a pattern, by their positions."""

    def __init__(self, plan: PlannedPattern) -> None:
        self._plan = plan
        self._points: dict[Position, Point] = {}
        self._last = _last_step(plan.parts)
        self._asking = _bits(
            number
            for number, (_, condition) in enumerate(plan.tests)
            if condition is not None
            and any(isinstance(node, Taken) for node in walk(condition.root))
        )
        builder = _Builder(plan, self._last)
        builder.begin()
        self.start = Point((), tuple(builder.threads), self._asking, complete=False)

    def after(self, position: Position) -> Point:
        """Return the point after the step at a position took a record."""
        point = self._points.get(position)
        if point is None:
            builder = _Builder(self._plan, self._last)
            builder.completed(position, _Crossed())
            threads = tuple(builder.threads)
            point = Point(position, threads, self._asking, complete=builder.complete)
            self._points[position] = point
        return point

    def next(self, thread: Thread) -> Point:
        """Return the point that a thread leads to."""
        point = thread.point
        if point is None:
            point = thread.point = self.after(thread.position)
        return point


class _Builder:
    """Goes from one place to everything that may follow."""

    def __init__(self, plan: PlannedPattern, last: int) -> None:
        self.threads: list[Thread] = []
        self.complete = False
        self._plan = plan
        self._last = last
        self._seen: set[Position] = set()

    def begin(self) -> None:
        self._walk((), 0, _Crossed(), entered=0, taken=False)

    def completed(self, position: Position, crossed: _Crossed) -> None:
        """Go on after a step or group was repeated once more."""
        prefix, (index, times) = position[:-1], position[-1]
        sequence = self._sequence(prefix)
        part = sequence[index]
        if part.most is None or times < part.most:
            # A negation that follows a repeated step already holds between its repetitions.
            repeated = crossed
            for absent in _absent_after(sequence, index):
                repeated = repeated.past(absent)
            # Without a limit only so many repetitions are told apart as must come.
            further = min(times + 1, max(part.least, 2)) if part.most is None else times + 1
            before = len(self.threads)
            self._enter(
                (*prefix, (index, further)), repeated, entered=len(prefix), after=part.between
            )
            if isinstance(part, Taker) and part.greedy:
                crossed = replace(crossed, blockers=crossed.blockers | self._since(before))
        least = 1 if isinstance(part, Body) and _may_be_empty(part) else part.least
        if times >= least:
            self._walk(prefix, index + 1, crossed, entered=len(prefix))

    def _walk(
        self,
        prefix: Position,
        index: int,
        crossed: _Crossed,
        *,
        entered: int,
        after: str | None = None,
        taken: bool = True,
    ) -> None:
        """Go on from a place in a sequence to all steps that may be next.

        ``after`` is how the first of them is reached, where a group around it says so; ``taken``
        is false where the sequence has just begun.
        """
        sequence = self._sequence(prefix)
        for place in range(index, len(sequence)):
            part = sequence[place]
            if isinstance(part, Taker) and part.absent:
                crossed = crossed.past(part)
                continue
            crossed = replace(crossed, waits=False, waits_next=False)
            before = len(self.threads)
            position = (*prefix, (place, 1))
            self._enter(position, crossed, entered=entered, after=after or part.after)
            if not (part.optional or (isinstance(part, Body) and _may_be_empty(part))):
                return
            after = None
            if isinstance(part, Taker) and part.greedy:
                crossed = replace(crossed, blockers=crossed.blockers | self._since(before))
        if not taken:
            return  # what took nothing is left out, or no match: whoever entered it goes on
        if prefix:
            self.completed(prefix, crossed)
        else:
            self._end(crossed)

    def _enter(self, position: Position, crossed: _Crossed, *, entered: int, after: str) -> None:
        part = self._part(position)
        if isinstance(part, Body):
            self._walk(position, 0, crossed, entered=entered, after=after, taken=False)
        elif position not in self._seen:
            self._seen.add(position)
            self.threads.append(self._thread(part, position, crossed, entered, after))

    def _thread(
        self, step: Taker, position: Position, crossed: _Crossed, entered: int, after: str
    ) -> Thread:
        stops: list[int] = []
        passes: list[int] = []
        for level in range(len(position)):
            until = self._part(position[: level + 1]).until
            if until is not None:
                begun = level < entered or position[level][1] > 1
                (stops if begun else passes).append(until)
        within, gap = self._plan.within is not None, self._plan.gap
        limited = within and (not gap or step.number == self._last)
        thread = Thread("take", crossed, after=after, limited=limited, position=position)
        thread.step, thread.test = step.number, 1 << step.test
        thread.ends, thread.passes = _bits(stops), _bits(passes)
        return thread

    def _end(self, crossed: _Crossed) -> None:
        if not crossed.waits and not crossed.waits_next:
            self.complete = True
            return
        kind: Kind = "absence" if crossed.waits else "not-next"
        limited = self._plan.within is not None
        self.threads.append(Thread(kind, crossed, after="", limited=limited, position=()))

    def _sequence(self, prefix: Position) -> tuple[AnyPart, ...]:
        parts: tuple[AnyPart, ...] = self._plan.parts
        for place, _ in prefix:
            part: Any = parts[place]
            parts = part.parts
        return parts

    def _part(self, position: Position) -> AnyPart:
        return self._sequence(position[:-1])[position[-1][0]]

    def _since(self, before: int) -> int:
        """Return the threads from a number on, as bits."""
        return _bits(range(before, len(self.threads)))


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _numbers(bits: int) -> list[int]:
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def _absent_after(sequence: tuple[AnyPart, ...], index: int) -> list[Taker]:
    found = []
    for part in sequence[index + 1 :]:
        if not isinstance(part, Taker) or not part.absent:
            break
        found.append(part)
    return found


def _may_be_empty(body: Body) -> bool:
    return all(
        part.optional
        or (isinstance(part, Taker) and part.absent)
        or (isinstance(part, Body) and _may_be_empty(part))
        for part in body.parts
    )


def _last_step(parts: tuple[AnyPart, ...]) -> int:
    """Return the last step that takes a record."""
    for part in reversed(parts):
        if isinstance(part, Body):
            return _last_step(part.parts)
        if not part.absent:
            return part.number
    return -1
