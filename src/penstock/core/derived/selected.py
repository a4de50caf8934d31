"""A stream with what is done to each of its records, and the type of what that makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.derived.steps import Declared, SelectionStep, TextReader, step_words
from penstock.core.hints import declare_first, label
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Input
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Schema
from penstock.errors import Place, Problem

__all__ = ["ReadSelection", "Selected", "read_selection", "record_of_results"]


@dataclass(frozen=True, slots=True)
class Selected:
    """A stream or table, or an `Inner` operator, and the steps that its records take."""

    data: Any
    steps: tuple[Declared, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Selected:
        """Return a stream as it is, or what was selected of one."""
        if hasattr(given, "steps") and hasattr(given, "stream"):
            return cls(given.stream, given.steps)
        return cls(given)

    def reading(self, data: Any) -> Selected:
        """Return the same steps of another stream."""
        return replace(self, data=data)


@dataclass(frozen=True, slots=True)
class ReadSelection:
    """Steps whose expressions are read; plain values that can travel."""

    input: Input
    steps: tuple[SelectionStep, ...]
    schema: Schema
    """What records are like behind them."""

    @property
    def makes_records(self) -> bool:
        """Whether a step makes new records; else they are those of the stream."""
        return any(step.condition is None for step in self.steps)

    def words(self) -> dict[str, str]:
        """Return what it is in words, to see whether it is still the same."""
        return {"stream": self.input.topic, "selection": step_words(self.steps)}


def read_selection(selected: Selected, place: Place | None) -> ReadSelection | list[Problem]:
    """Return the steps of a stream read, or everything that is wrong with them."""
    data = selected.data
    if getattr(data, "record", None) is None or getattr(data, "topic", None) is None:
        hint = declare_first(data) or "pass what app.stream(...) returned"
        return [Problem("part.not-data", f"{label(data)} is not a stream or a table", hint, place)]
    reader = TextReader(data.record.schema, place)
    steps = [reader.step(step) for step in selected.steps]
    if reader.problems:
        return reader.problems
    return ReadSelection(input_of(data), tuple(step for step in steps if step), reader.schema)


def record_of_results(
    name: str, reads: Sequence[ReadSelection], key: tuple[str, ...] | None = None
) -> RecordType[Any]:
    """Return the type of what selections make, for a stream of this name.

    It is that of the stream, where they all are of one type and change nothing.
    """
    first = reads[0]
    if key is None and not any(each.makes_records for each in reads):
        classes = {each.input.record.cls for each in reads}
        if len(classes) == 1:
            return first.input.record
    schema = replace(first.schema, name=type_name(name))
    return made_record(schema if key is None else replace(schema, key=key))
