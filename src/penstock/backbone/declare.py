"""Declare what an application needs on the log: its topics and its schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.backbone.client.connection import Connection
from penstock.backbone.schemas import SchemaRegistry
from penstock.backbone.topics.topics import TopicChange, Topics
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.records.evolution import refusals
from penstock.core.records.schema import Schema
from penstock.errors import ConfigurationError

__all__ = ["Declared", "declare_anew", "declare_application", "schema_versions"]

_VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a declaration did; ``schemas`` has the number of each topic's new version."""

    topics: Sequence[TopicChange]
    schemas: Mapping[str, int]

    @property
    def nothing(self) -> bool:
        """Whether everything existed already."""
        return not self.topics and not self.schemas


def declare_application(
    graph: Graph,
    connection: Connection,
    *,
    change: bool = False,
    repartition: bool = False,
    replacing: str | None = None,
) -> Declared:
    """Make the topics of an application as declared, and write down the schemas of their records.

    Idempotent. A record type must be able to read every version that its topic was ever declared
    with; if one is not, ConfigurationError ``schema.refused`` lists all refusals of all topics,
    and nothing was done. ``change`` and ``repartition`` are those of :meth:`Topics.declare`. The
    schema of a table that is about to be replaced as a whole is left to :func:`declare_anew`.
    """
    topics, registry = Topics(connection), SchemaRegistry(connection)
    known = registry.all()
    existing = {state.name for state in topics.list()}
    fresh: dict[str, dict[str, Any]] = {}
    refused: list[str] = []
    for data in graph.on_log:
        if data.name == replacing:
            continue
        # A topic that was deleted took the records of its earlier versions along.
        earlier = schema_versions(known.get(data.name)) if data.name in existing else []
        schema = data.record.schema
        refused += [f"{data.name}: {why}" for why in _refusals(earlier, schema)]
        if not earlier or earlier[-1] != schema:
            versions = [version for version in earlier if version != schema] + [schema]
            fresh[data.name] = {_VERSIONS: [version.to_json() for version in versions]}
    if refused:
        raise ConfigurationError(
            "record types cannot read the records on their topics",
            code="schema.refused",
            detail="\n  ".join(refused),
            hint="undo the change, or declare a stream with a new name and replay the old one"
            " into it; to rebuild a table that a pipeline fills: penstock rebuild NAME",
        )
    changes = topics.declare(graph.topics(), change=change, repartition=repartition)
    if fresh:
        registry.put_all(fresh)
    return Declared(changes, {topic: len(each[_VERSIONS]) for topic, each in fresh.items()})


def declare_anew(data: OnLog, connection: Connection) -> None:
    """Make the schema of a topic the only one: none of its records is of an earlier one."""
    schema = data.record.schema.to_json()
    SchemaRegistry(connection).put(data.name, {_VERSIONS: [schema]})


def schema_versions(entry: Mapping[str, Any] | None) -> list[Schema]:
    """Return the versions that an entry of the registry holds, oldest first."""
    return [Schema.from_json(version) for version in (entry or {}).get(_VERSIONS, [])]


def _refusals(earlier: Sequence[Schema], new: Schema) -> list[str]:
    """Return the reasons against the new schema, each once, with the version it cannot read."""
    found: dict[str, int] = {}
    for number, old in enumerate(earlier, start=1):
        for why in refusals(old, new):
            found.setdefault(why, number)
    return [f"{why} (version {number} of {len(earlier)})" for why, number in found.items()]
