"""What a match discards: others that begin too early to be given beside it.

Matches are given in order of their first record, then of their last, the longer first. One that is
complete is held back while an earlier begun one may still become a match, which could discard it.
"""

from __future__ import annotations

from heapq import heapify, heappop

from penstock.core.patterns.matches.begun import KeyState, Match
from penstock.core.patterns.matches.events import Order, PatternEvent
from penstock.core.patterns.planned import Skipping
from penstock.errors import DataError

__all__ = ["release"]


def release(
    state: KeyState,
    skipping: Skipping,
    matches: list[Match],
    failed: list[tuple[PatternEvent, DataError]],
) -> None:
    """Give the matches that nothing holds back any more, each with what it discards."""
    while state.held:
        (first, *_), match = state.held[0]
        if any(begun.first.order < first for begun in state.begun()):
            return
        heappop(state.held)
        try:
            bound = _bound(match, skipping)
        except DataError as error:
            failed.append((match.last.event, error))
            continue
        matches.append(match)
        if bound is not None:
            _discard(state, bound)


def _bound(match: Match, skipping: Skipping) -> Order | None:
    """Return the last place at which what begins is discarded; None: nothing is."""
    path = match.path()
    first = path[0].event.order
    if skipping.mode == "to-next":
        return first
    if skipping.mode == "past-last":
        return path[-1].event.order
    of_step = [link.event.order for link in path if link.step == skipping.step]
    if not of_step:
        if skipping.must:
            raise _no_place("it has no record of the step to skip to")
        return None
    to = of_step[0] if skipping.mode == "to-first" else of_step[-1]
    if to == first and skipping.must:
        raise _no_place("it begins with the record to skip to")
    return _just_before(to)


def _no_place(why: str) -> DataError:
    hint = "leave out must=True, or skip to another step"
    return DataError(f"a match cannot be skipped: {why}", code="pattern.skip", hint=hint)


def _just_before(order: Order) -> Order:
    time, number, place = order
    return time, number, place - 1


def _discard(state: KeyState, bound: Order) -> None:
    state.fresh = [each for each in state.fresh if each.first.order > bound]
    for point in list(state.waiting):
        left = [each for each in state.waiting[point] if each.first.order > bound]
        if left:
            state.waiting[point] = left
        else:
            del state.waiting[point]
    state.held = [each for each in state.held if each[0][0] > bound]
    heapify(state.held)
