"""What queries may name: tables, and states of services as ``service.state``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.core.graph.data import Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.records.schema import Schema
from penstock.core.wiring.panes import rollup_of
from penstock.serving.relations.staterows import StateShape
from penstock.serving.relations.windowrows import WINDOWS, WindowShape

__all__ = ["Relation", "Shape", "StateRelation", "TableRelation", "relations_of_app", "schemas"]


@dataclass(frozen=True, kw_only=True)
class Relation:
    """Something with rows. ``right`` is the name that roles have for it."""

    name: str
    schema: Schema
    """Its columns; its key tells rows apart."""
    keyed: Schema
    """The same; its key is that of the log, by which the owner of a row is found."""
    right: str
    topics: tuple[str, ...]
    """Whose positions an answer of it has."""


@dataclass(frozen=True, kw_only=True)
class TableRelation(Relation):
    """A table: its columns are the fields of its record type."""

    table: Table[Any]
    read: Callable[[bytes], Any] = field(compare=False)
    """From a row on the log to a record; DataError: it is none."""


class Shape(Protocol):
    """How the keys and values of a state become rows."""

    @property
    def schema(self) -> Schema:
        """Its columns; its key tells rows apart."""

    @property
    def keyed(self) -> Schema:
        """The same, its key that of the log."""

    @property
    def ranged(self) -> bool:
        """Whether its keys have the order of texts."""

    @property
    def routed(self) -> bool:
        """Whether a key is in the task that it leads to on the log."""

    def place(self, key: bytes) -> bytes:
        """Return what a key on the log is called in the state."""

    def rows(self, key: bytes, value: bytes) -> Iterable[Any]:
        """Return the rows of a key; DataError: they cannot be read."""


@dataclass(frozen=True, kw_only=True)
class StateRelation(Relation):
    """A state of a service: the fields of its key, and what is remembered for it."""

    service: Service
    state: str
    """What its workers call it."""
    shape: Shape = field(compare=False)


def relations_of_app(
    graph: Graph, tables: Iterable[Table[Any]], services: Iterable[Service]
) -> dict[str, Relation]:
    """Return the relations by their names; a table goes before a state of the same name.

    A table that windows fill on services has these windows beside it: ``table.windows``.
    """
    listed = tuple(tables)
    found: dict[str, Relation] = {}
    for relation in (*_windows(graph, listed), *_states(services), *map(_table, listed)):
        found[relation.name] = relation
    return found


def schemas(relations: Mapping[str, Relation]) -> dict[str, Schema]:
    """Return the columns of relations by their names."""
    return {name: relation.schema for name, relation in relations.items()}


def _table(table: Table[Any]) -> TableRelation:
    codec = JsonCodec(table.record, max_bytes=table.topic.max_record_bytes)
    return TableRelation(
        name=table.name,
        schema=table.record.schema,
        keyed=table.record.schema,
        right=table.name,
        topics=(table.topic.name,),
        table=table,
        read=codec.decode,
    )


def _states(services: Iterable[Service]) -> Iterator[StateRelation]:
    for service in services:
        for spec in service.states:
            name = f"{service.name}.{spec.name}"
            shape = StateShape(name, service.reads[0].record.schema, spec)
            yield StateRelation(
                name=name,
                schema=shape.schema,
                keyed=shape.keyed,
                right=service.name,
                topics=tuple(data.topic.name for data in service.reads),
                service=service,
                state=spec.name,
                shape=shape,
            )


def _windows(graph: Graph, tables: Iterable[Table[Any]]) -> Iterator[StateRelation]:
    filled = {
        data.name: part
        for part in graph.parts
        if isinstance(part, Service) and part.aggregation is not None
        for data in part.outputs
    }
    for table in tables:
        service = filled.get(table.name)
        if service is None:
            continue
        name = f"{table.name}.{WINDOWS}"
        shape = WindowShape(name, rollup_of(service))
        yield StateRelation(
            name=name,
            schema=shape.schema,
            keyed=shape.keyed,
            right=table.name,
            topics=tuple(data.topic.name for data in service.reads),
            service=service,
            state=WINDOWS,
            shape=shape,
        )
