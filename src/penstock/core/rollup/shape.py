"""What is wrong with the pieces a windowed aggregation was put together from, before it is read."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeAlias

from penstock.core.aggregates.aggregate import Aggregate, form_of, is_number
from penstock.core.derived.steps import Flattened
from penstock.core.hints import did_you_mean
from penstock.core.panes.triggers import Trigger
from penstock.core.panes.windows import WindowKind
from penstock.core.rollup.aggregation import Aggregation
from penstock.errors import Problem

__all__ = ["shape_problems"]

_NUMBERS = {"count", "size", "delay", "gap", "period", "offset"}
_WORDS: dict[str, tuple[str, ...]] = {
    "mode": ("discarding", "accumulating", "retracting"),
    "stamp": ("end", "earliest", "latest"),
    "final_pane": ("if_new", "always"),
    "on_time_pane": ("always", "if_new"),
}
_EXPRESSION = 'an expression is a text: "celsius * 1.8 + 32"'
_STEPS = ("zero", "add", "merge", "result")

_Found: TypeAlias = Iterator[tuple[str, str, str]]
"""Code, message and hint of each problem."""


def shape_problems(aggregation: Aggregation) -> list[Problem]:
    """Return every piece that is not what it must be; with one of them nothing else can be read."""
    windowing = aggregation.windowed.windowing
    found = [
        *_windows(windowing.windows),
        *_trigger(windowing.trigger),
        *_word("time", aggregation.windowed.time, ("event", "processing")),
        *(
            each
            for option, words in _WORDS.items()
            for each in _word(option, getattr(windowing, option), words)
        ),
        *_texts(aggregation),
        *(each for name, value in aggregation.aggregates for each in _aggregate(name, value)),
    ]
    return [Problem(code, text, hint, aggregation.place) for code, text, hint in found]


def _windows(given: Any) -> _Found:
    if not isinstance(given, WindowKind):
        text = f"{given!r} is not a kind of window"
        hint = 'fixed("1m"), sliding("1h", every="5m"), sessions(gap="10m"), for example'
        yield "window.option", text, hint
        return
    yield from _whole_numbers("windows", given)


def _trigger(given: Any) -> _Found:
    if not isinstance(given, Trigger):
        hint = 'on_watermark(early=every("5s")), every_record(), after_count(10), for example'
        yield "window.option", f"{given!r} is not a trigger", hint
        return
    yield from _whole_numbers("trigger", given)
    for field in fields(given):
        inner = getattr(given, field.name)
        if isinstance(inner, tuple):
            for each in inner:
                yield from _trigger(each)
        elif field.name not in _NUMBERS and inner is not None:
            yield from _trigger(inner)


def _whole_numbers(where: str, given: Any) -> _Found:
    for field in fields(given):
        value = getattr(given, field.name)
        if field.name in _NUMBERS and not is_number(value, int):
            text = f"{where}: {field.name}: {value!r} is not a whole number"
            yield "window.option", text, "how many records: 100, for example"


def _word(option: str, given: Any, words: tuple[str, ...]) -> _Found:
    if given not in words:
        yield "window.option", f"{option}: there is no {given!r}", did_you_mean(given, words)


def _texts(aggregation: Aggregation) -> _Found:
    by: tuple[tuple[Any, Any], ...] = aggregation.windowed.by
    for name, text in by:
        if not isinstance(name, str) or not isinstance(text, str):
            hint = 'by="device", by=("site", "device") or by={"hour": "hour(at)"}'
            yield "window.by", f"by {name!r}, which is not a field", hint
    for step in aggregation.windowed.selection.steps:
        if isinstance(step, Flattened):
            hint = "flatten into a stream of its own: app.stream(name, ..., on=...)"
            yield "window.flatten", f"windows cannot read the items of {step.field!r}", hint
            continue
        for text in _step_texts(step):
            if not isinstance(text, str):
                yield "expression.text", f"{text!r} is not an expression", _EXPRESSION


def _step_texts(step: Any) -> list[Any]:
    """Return the expressions of a condition, or of the fields that were selected."""
    selected = isinstance(step, tuple) and all(isinstance(each, tuple) for each in step)
    return [each[-1] for each in step] if selected else [step]


def _aggregate(name: str, given: Any) -> _Found:
    if not isinstance(given, Aggregate):
        hint = f'{name}=count(), {name}=mean("celsius"), for example'
        yield "aggregate.option", f"{name}: {given!r} is not an aggregate", hint
        return
    combiner: Any = given.combiner
    of: Any = given.of
    if of is not None and not isinstance(of, str):
        yield "expression.text", f"{name}: {of!r} is not an expression", _EXPRESSION
    if missing := [step for step in _STEPS if not callable(getattr(combiner, step, None))]:
        text = f"{name}: {combiner!r} cannot combine values: it has no {', '.join(missing)}"
        yield "aggregate.option", text, "docs/aggregates.md shows one: zero, add, merge and result"
        return
    for text, hint in form_of(combiner).problems(combiner):
        yield "aggregate.option", f"{name}: {text}", hint
