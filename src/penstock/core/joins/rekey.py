"""A side of a join on its way to another partition: each record goes where its key is.

The records travel whole, beside the text of their key and their event time, so that the join reads
them as they were. A record whose key is null travels too: an outer join gives it a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.expression.values.times import from_micros
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import (
    Arrival,
    Input,
    MachineOutput,
    Refused,
    Result,
    RowLookup,
    Shape,
)
from penstock.core.operators.plans import StatelessPlan
from penstock.core.operators.stateless import StatelessMachine
from penstock.core.panes.store import Store
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.codec import key_encoder
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Nested, Scalar, Schema
from penstock.errors import DataError, Place, Problem

__all__ = ["Rekeyed", "key_text", "keyless", "rekeyed_record"]

_NOWHERE = "null"
"""The text of a key that is null: such records share a partition, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """The records of a stream, keyed by other fields of theirs, which may be null."""

    selected: Selected
    by: tuple[str, ...]
    place: Place | None = None

    @property
    def kind(self) -> str:
        """Return what it is."""
        return "repartitioning"

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.selected.data,)

    def reading(self, data: Sequence[Any]) -> Rekeyed:
        """Return the same of another stream."""
        return replace(self, selected=self.selected.reading(data[0]))

    def plan(self) -> RekeyPlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        found = read_selection(self.selected, self.place)
        if not isinstance(found, ReadSelection):
            return found
        rule = WatermarkRule.of(self.selected.data.event_time)
        return RekeyPlan(
            replace(found, input=replace(input_of(self.selected.data), rule=rule)), self.by
        )


def rekeyed_record(name: str, schema: Schema) -> RecordType[Any]:
    """Return the type of such records."""
    fields = (
        Field(name="key", type=Scalar("text")),
        Field(name="at", type=Scalar("instant")),
        Field(name="record", type=Nested(schema)),
    )
    return made_record(Schema(name=type_name(name), fields=fields, key=("key",), time="at"))


def keyless(schema: Schema, by: Sequence[str]) -> Callable[[Any], bool] | None:
    """Return what says whether a record has no key; None: each has one."""
    nullable = [name for name in by if (found := schema.field(name)) and found.nullable]
    if not nullable:
        return None
    reads = [attrgetter(name) for name in nullable]
    return lambda record: any(read(record) is None for read in reads)


def key_text(schema: Schema, by: Sequence[str]) -> Callable[[Any], bytes]:
    """Return what gives the key on the log that a record has where its key is these fields."""
    found = key_encoder(replace(schema, key=tuple(by)))
    if found is None:
        raise TypeError(f"{schema.name}: no key")
    return found


@dataclass(frozen=True, slots=True)
class RekeyPlan(StatelessPlan):
    """The records of one stream, each with its key."""

    selection: ReadSelection
    by: tuple[str, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""
        return (self.selection.input,)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - a stream
        """Return the type of its results."""
        return rekeyed_record(name, self.selection.schema)

    def machine(
        self,
        store: Store,  # noqa: ARG002 - it remembers nothing
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - and looks nothing up
    ) -> RekeyMachine:
        """Return what does the work."""
        return RekeyMachine(self, record)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        return self.selection.words() | {"key": ", ".join(self.by)}

    def holds(self) -> tuple[str, ...]:
        """Return nothing: no state is held."""
        return ()


class RekeyMachine(StatelessMachine):
    """Gives each record with its key and its event time."""

    def __init__(self, plan: RekeyPlan, record: RecordType[Any]) -> None:
        schema = plan.selection.schema
        self._rows = compile_steps(plan.selection.steps, made_record(schema).cls)
        self._key = key_text(schema, plan.by)
        self._keyless = keyless(schema, plan.by)
        self._make = record.cls

    def take(
        self,
        arrivals: Sequence[Arrival],
        *,
        clock: int,  # noqa: ARG002 - time means nothing to it
        limit: int | None = None,  # noqa: ARG002 - nothing is due later
    ) -> MachineOutput:
        """Give each record with its key."""
        given = MachineOutput()
        none = self._keyless
        for arrival in arrivals:
            if arrival.record is None:
                continue
            try:
                rows = self._rows(arrival.record)
            except DataError as error:
                given.refused.append(Refused(arrival, error))
                continue
            for row in rows:
                key = _NOWHERE if none is not None and none(row) else self._key(row).decode()
                made = self._make(key=key, at=from_micros(arrival.time), record=row)
                given.results.append(Result("add", made, arrival.time))
            if not rows:
                given.dropped += 1
        return given
