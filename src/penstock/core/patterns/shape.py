"""What is wrong with the pieces a pattern was put together from, before its texts are read."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from penstock.core.hints import declare_first, did_you_mean, label
from penstock.core.patterns.declared import DeclaredPattern, steps_of
from penstock.core.patterns.steps import Element, Group, Step
from penstock.core.records.names import FIELD_NAME_HINT, field_name_problem, is_field_name
from penstock.errors import Problem

__all__ = ["MAX_TIMES", "RESERVED", "least_and_most", "shape_problems"]

MAX_TIMES = 1_000
"""The most repetitions that may be written out; None has no limit."""
RESERVED = ("at", "timed_out", "withdrawn")
"""Names that no step and no field of a result may have."""

_CONTIGUITY = ("strict", "relaxed", "any")
_SKIPS = ("none", "to-next", "past-last", "to-first", "to-last")
_EXPRESSION = 'an expression is a text: "amount > 100"'
_Found: TypeAlias = Iterator[tuple[str, str, str]]


def shape_problems(given: DeclaredPattern) -> list[Problem]:
    """Return every piece that is not what it must be; with one of them nothing else can be read."""
    found = [*_options(given), *_elements(given.elements), *_ends(given), *_names(given)]
    return [Problem(code, text, hint, given.place) for code, text, hint in found]


def least_and_most(times: Any) -> tuple[int, int | None] | None:
    """Return how often at least and at most; None where it cannot be read."""
    least, most = times if isinstance(times, tuple | list) and len(times) == 2 else (times, times)  # noqa: PLR2004
    if not _is_count(least) or not (most is None or _is_count(most)):
        return None
    if most is not None and (most < max(least, 1) or most > MAX_TIMES):
        return None
    return (least, most) if least <= MAX_TIMES else None


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _options(given: DeclaredPattern) -> _Found:
    mode: Any = given.mode
    yield from _word("within_of", given.within_of, ("match", "gap"))
    yield from _word("results", mode, ("final", "early"))
    yield from _word("after_match", given.skip, _SKIPS)
    if not _is_count(given.most_begun) or given.most_begun < 1:
        yield (
            "pattern.option",
            f"most_begun: {given.most_begun!r} is not a count",
            "1000, for example",
        )
    if not all(isinstance(name, str) for name in given.by):
        yield "pattern.by", f"by {given.by!r}, which are not fields", 'by="order", for example'
    if mode == "early" and given.skip_must:
        text = "early results may be withdrawn: after_match(must=True) cannot hold"
        yield "pattern.option", text, 'leave out must=True, or .results("final")'
    if given.within_of == "gap" and given.within is None:
        yield "pattern.option", "within_of is said, but not within", 'within="10m", for example'


def _word(option: str, given: Any, words: tuple[str, ...]) -> _Found:
    if given not in words:
        yield "pattern.option", f"{option}: there is no {given!r}", did_you_mean(given, words)


def _elements(elements: tuple[Element, ...]) -> _Found:
    if not elements:
        yield "pattern.empty", "it has no steps", 'begin with .first("name", stream)'
    for each in elements:
        if isinstance(each, Group):
            if each.sequence.misused:
                text = "a sequence takes no stream, where or greedy: its steps do"
                yield "pattern.step", text, "say them on the steps of the sequence"
            if each.sequence.elements and all(map(_absent, each.sequence.elements)):
                text = "a sequence of nothing but what must not come takes no record"
                yield "pattern.step", text, "say .never(...) in the pattern itself"
            yield from _repetition("a sequence", each)
            yield from _elements(each.sequence.elements)
        else:
            yield from _step(each)


def _absent(element: Element) -> bool:
    return isinstance(element, Step) and element.absent


def _step(step: Step) -> _Found:
    name: Any = step.name
    if not is_field_name(name):
        hint = 'a step is called as a field is: "order"'
        yield "pattern.step", f"{name!r} is not a name for a step", hint
    if getattr(step.stream, "kind", None) != "stream":
        text = f"step {name!r} reads {label(step.stream)}, which is not a stream"
        hint = declare_first(step.stream) or f'.then("{name}", stream, ...)'
        yield "pattern.step", text, hint
    where: Any = step.where
    if where is not None and not isinstance(where, str):
        yield "expression.text", f"{where!r} is not an expression", _EXPRESSION
    yield from _repetition(f"step {name!r}", step)
    if step.greedy and least_and_most(step.times) == (1, 1) and not step.optional:
        yield "pattern.step", f"step {name!r} is greedy, but is not repeated", "times=(1, None)"


def _repetition(what: str, element: Element) -> _Found:
    yield from _word(f"{what}: between", element.between, _CONTIGUITY)
    if least_and_most(element.times) is None:
        text = f"{what}: times={element.times!r} is not a number of repetitions"
        yield "pattern.times", text, f"3, (1, 3) or (1, None); {MAX_TIMES} at most"
    until: Any = element.until
    if until is not None and not isinstance(until, str):
        yield "expression.text", f"{until!r} is not an expression", _EXPRESSION
    elif until is not None and least_and_most(element.times) == (1, 1):
        yield "pattern.times", f"{what} has until, but is not repeated", "times=(1, None)"


def _ends(given: DeclaredPattern) -> _Found:
    if not given.elements:
        return
    first = given.elements[0]
    while isinstance(first, Group) and first.sequence.elements:
        first = first.sequence.elements[0]
    if isinstance(first, Step) and first.absent:
        text = f"it begins with {first.name!r}, which must not come"
        yield "pattern.step", text, "begin with a record that comes: .first(...)"
    awaited = [step for step in _absent_at_end(given.elements) if step.after == "relaxed"]
    if awaited and given.within is None:
        text = f"it ends with {awaited[0].name!r} never coming, but nothing says for how long"
        yield "pattern.endless", text, 'pattern(..., within="10m")'


def _absent_at_end(elements: Sequence[Element]) -> Iterator[Step]:
    """Yield the steps that must not come after the last one that does, from the last one on."""
    for element in reversed(elements):
        if isinstance(element, Group):
            yield from _absent_at_end(element.sequence.elements)
            return
        if not element.absent:
            return
        yield element


def _names(given: DeclaredPattern) -> _Found:
    steps = list(steps_of(given.elements))
    names = [step.name for step in steps]
    for name, count in Counter(names).items():
        if count > 1:
            yield "pattern.step", f"two steps are called {name!r}", "rename one"
    fields = [name for name, _ in given.fields] if given.fields is not None else names
    for name in [] if given.fields is None else dict.fromkeys(fields):
        if wrong := field_name_problem(name):
            yield "pattern.name", wrong, FIELD_NAME_HINT
    for name in dict.fromkeys((*fields, *given.by)):
        if name in RESERVED:
            hint = f"these names are reserved: {', '.join(RESERVED)}"
            yield "pattern.name", f"{name!r} is a field of every result", hint
    takes = [step.name for step in steps if not step.absent]
    if given.skip in ("to-first", "to-last") and given.skip_step not in takes:
        text = f"after_match: there is no step {given.skip_step!r}"
        yield "pattern.option", text, did_you_mean(given.skip_step, takes)
    if given.fields is not None and not given.fields:
        yield "pattern.name", "it selects nothing", '.select(order="order.order")'
    takes = takes if given.fields is None else []
    for name in (name for name in takes if name in given.by):
        hint = f'.select(..., {name}="{name}.{name}"), or another name for the step'
        yield "pattern.name", f"a step and a by field are called {name!r}", hint
