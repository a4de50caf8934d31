"""A windowed aggregation in words: for people, and to see whether it is still the same.

State was computed by one declaration and means nothing under another. What may change without
harm is not in here: how the watermark follows the records, and how late they may come.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from penstock.core.derived.steps import step_words
from penstock.core.instants import MICROSECOND
from penstock.core.panes.times import END
from penstock.core.rollup.resolve import Rollup
from penstock.core.units import duration_text
from penstock.errors import ConfigurationError

__all__ = ["combiner_words", "declaration_of", "refuse_changed"]

_SPANS = {"size", "offset", "period", "gap", "delay", "lateness"}


def declaration_of(rollup: Rollup) -> dict[str, str]:
    """Return what an aggregation computes, aspect by aspect."""
    windowing = rollup.windowing
    return {
        "stream": rollup.topic,
        "selection": step_words(rollup.steps),
        "by": ", ".join(
            f"{group.name} = {group.expression.text} ({group.type})" for group in rollup.groups
        ),
        "windows": combiner_words(windowing.windows),
        "time": "processing" if rollup.rule is None else "event",
        "trigger": combiner_words(windowing.trigger),
        "accumulation": windowing.mode,
        "aggregates": ", ".join(
            f"{each.name} = {combiner_words(each.combiner)} of {each.expression or 'records'}"
            f" ({each.type} to {each.gives.type})"
            for each in rollup.measures
        ),
    }


def refuse_changed(
    name: str,
    before: Mapping[str, str],
    now: Mapping[str, str],
    *,
    hint: str,
    what: str = "aggregation",
) -> None:
    """Raise a ConfigurationError with all that is different, if the state is another one's."""
    different = [
        f"{aspect}: was {before.get(aspect) or 'nothing'}, is {now.get(aspect) or 'nothing'}"
        for aspect in dict.fromkeys((*before, *now))
        if before.get(aspect) != now.get(aspect)
    ]
    if different:
        raise ConfigurationError(
            f"{name}: the {what} was changed, its state is that of the old one",
            code=f"{'aggregation' if what == 'aggregation' else 'operator'}.changed",
            detail="; ".join(different),
            hint=hint,
        )


def combiner_words(value: Any) -> str:
    """Return a value of the declaration as words: ``fixed windows(size 1m)``."""
    name = type(value).__name__
    if not is_dataclass(value):
        return f"{type(value).__module__}.{type(value).__qualname__}"
    inside = []
    for field in fields(value):
        given = getattr(value, field.name)
        if isinstance(given, tuple):
            inside.append(", ".join(combiner_words(each) for each in given))
        elif is_dataclass(given):
            inside.append(f"{field.name} {combiner_words(given)}")
        elif isinstance(given, int) and field.name in _SPANS and not _is_count(value, field.name):
            inside.append(f"{field.name} {_span(given)}")
        elif given is not None:
            inside.append(f"{field.name} {given}")
    return f"{name}({', '.join(inside)})" if inside else name


def _is_count(value: Any, name: str) -> bool:
    return name == "size" and type(value).__name__ == "CountWindows"


def _span(micros: int) -> str:
    if micros >= END:
        return "for ever"
    whole, rest = divmod(micros, 1000)
    return duration_text(whole * 1000 * MICROSECOND) + (f"{rest}us" if rest else "")
