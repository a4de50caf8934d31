"""What is wrong with the shape of a life cycle: states and moves that make no sense together."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Any

from penstock.core.hints import did_you_mean
from penstock.core.lifecycles.declared import DeclaredLifeCycle, Move
from penstock.core.options import UnreadableSpan
from penstock.errors import Problem

__all__ = ["soundness_problems"]


def soundness_problems(life: DeclaredLifeCycle) -> Iterator[Problem]:
    """Yield what can be said without reading an expression."""
    if unnamed := list(_names(life)):
        yield from unnamed
        return
    yield from _timeouts(life)
    yield from _unreachable(life)
    yield from _never_made(life)


def _names(life: DeclaredLifeCycle) -> Iterator[Problem]:
    if not life.states:
        yield Problem("lifecycle.states", "it has no state", 'lifecycle("new", "done")', life.place)
        return
    for state in dict.fromkeys(life.states):
        text: Any = state
        if not isinstance(text, str) or not text.strip() or "->" in text or "|" in text:
            text = f"{state!r} cannot name a state"
            yield Problem("lifecycle.states", text, "a state is a word or two", life.place)
        elif life.states.count(state) > 1:
            text = f"the state {state!r} is declared twice"
            yield Problem("lifecycle.states", text, "name each state once", life.place)
    named = [(each, move.place) for move in life.moves for each in move.sources]
    named += [(move.target, move.place) for move in life.moves if move.target is not None]
    named += [(entry.state, entry.place) for entry in life.entries]
    named += [(state, life.place) for state in life.resting]
    for state, place in dict.fromkeys(named):
        if not state:
            hint = 'write "cold -> hot", or "cold | warm -> hot"'
            yield Problem("lifecycle.move", "a move has no beginning or no end", hint, place)
        elif state not in life.states:
            text = f"there is no state {state!r}"
            yield Problem("lifecycle.state", text, did_you_mean(state, life.states), place)


def _timeouts(life: DeclaredLifeCycle) -> Iterator[Problem]:
    spans: dict[str, Move] = {}
    for move in life.moves:
        if move.after is None:
            continue
        if isinstance(move.after, UnreadableSpan) or move.after <= timedelta():
            why = getattr(move.after, "problem", f"{move.after} is no span")
            yield Problem("lifecycle.after", why, '.after("2h", "cold -> off")', move.place)
        for state in move.sources:
            if state in spans:
                text = f"the state {state!r} has two time-outs"
                yield Problem("lifecycle.after", text, "a state ends after one time", move.place)
            spans[state] = move
    for state in life.states:
        if state not in spans and state not in life.resting:
            text = f"the state {state!r} could last for ever: it has no time-out"
            hint = f'add .after("1h", "{state} -> ..."), or say that it may: .rests("{state}")'
            yield Problem("lifecycle.no-time-out", text, hint, life.place)
        if state in spans and state in life.resting:
            text = f"the state {state!r} rests, and has a time-out"
            yield Problem("lifecycle.after", text, "remove one of the two", life.place)
    if cycle := _endless({state: move.target or state for state, move in spans.items()}):
        text = f"time alone goes round for ever: {' -> '.join(cycle)}"
        yield Problem("lifecycle.endless", text, "let one of them wait for a record", life.place)


def _endless(targets: Mapping[str, str]) -> list[str]:
    """Return states that time-outs lead through in a circle."""
    sorter = TopologicalSorter({state: {target} for state, target in targets.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _unreachable(life: DeclaredLifeCycle) -> Iterator[Problem]:
    reached, left = {life.states[0]}, [life.states[0]]
    while left:
        state = left.pop()
        for move in life.moves:
            if state in move.sources and move.target is not None and move.target not in reached:
                reached.add(move.target)
                left.append(move.target)
    for state in life.states:
        if state not in reached:
            text = f"nothing leads to the state {state!r}"
            hint = f'add .on(..., "... -> {state}"), or remove it'
            yield Problem("lifecycle.unreachable", text, hint, life.place)


def _never_made(life: DeclaredLifeCycle) -> Iterator[Problem]:
    """Find moves behind one that every record of the stream takes."""
    taken: dict[tuple[str, int], Move] = {}
    for move in life.moves:
        if move.stream is None:
            continue
        for state in move.sources:
            before = taken.get((state, move.stream))
            if before is not None and not before.where:
                what = f"{state} -> {move.target or state}"
                text = f"{what!r} never happens: every record moves {state!r} before it is tried"
                hint = "give the earlier move a where=..., or remove this one"
                yield Problem("lifecycle.never", text, hint, move.place)
            taken.setdefault((state, move.stream), move)
            if not move.where:
                taken[state, move.stream] = move
