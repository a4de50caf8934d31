"""Steps as one function, compiled once, then called for each record."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from penstock.core.derived.steps import SelectionStep
from penstock.core.expression import compile_predicate, compile_row

__all__ = ["compile_step", "compile_steps"]

Row = Any
"""A record, or what a step made of it."""

_KEPT: tuple[Row, ...] = ()


def compile_step(step: SelectionStep) -> Callable[[Row], Row | None]:
    """Return what keeps a record, or makes another one of it; None: it is left out."""
    if step.condition is not None:
        holds = compile_predicate(step.condition)
        return lambda row: row if holds(row) else None
    return _making(step, None)


def compile_steps(
    steps: Sequence[SelectionStep], made: type[Any] | None = None
) -> Callable[[Row], Sequence[Row]]:
    """Return what makes a record into those that the steps leave, in order.

    ``made`` is the class of records that any of the steps makes; without it they have the fields
    alone.
    """
    if not steps:
        return lambda row: (row,)
    last = max((n for n, step in enumerate(steps) if step.condition is None), default=-1)
    several = [
        _several(step, made if number == last else None) for number, step in enumerate(steps)
    ]
    if len(several) == 1:
        return several[0]

    def all_of(row: Row) -> Sequence[Row]:
        rows: Sequence[Row] = (row,)
        for each in several:
            rows = [found for row in rows for found in each(row)]
            if not rows:
                break
        return rows

    return all_of


def _several(step: SelectionStep, made: type[Any] | None) -> Callable[[Row], Sequence[Row]]:
    if step.condition is not None:
        holds = compile_predicate(step.condition)
        return lambda row: (row,) if holds(row) else _KEPT
    if step.flattens:
        return _flattening(step, made)
    make = _making(step, made)
    return lambda row: (make(row),)


def _making(step: SelectionStep, made: type[Any] | None) -> Callable[[Row], Row]:
    names = [name for name, _ in step.fields]
    values = [compile_row(expression) for _, expression in step.fields]
    if made is None:
        selected = msgspec.defstruct("Selected", names)
        return lambda row: selected(*[value(row) for value in values])
    return lambda row: made(**{name: value(row) for name, value in zip(names, values, strict=True)})


def _flattening(step: SelectionStep, made: type[Any] | None) -> Callable[[Row], Sequence[Row]]:
    if step.schema is None:
        raise TypeError(f"{step.flattens}: a list was not read")
    names = [field.name for field in step.schema.fields]
    make = made or msgspec.defstruct("Flattened", names, kw_only=True)
    flattens = step.flattens
    others = [name for name in names if name != flattens]

    def flatten(row: Row) -> Sequence[Row]:
        items = getattr(row, flattens)
        if not items:
            return _KEPT
        rest = {name: getattr(row, name) for name in others}
        return [make(**rest, **{flattens: item}) for item in items]

    return flatten
