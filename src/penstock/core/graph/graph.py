"""The application as a value: what it declares, and how records flow between its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.core.graph.data import Data, Lake, OnLog
from penstock.core.graph.parts import Part, Service, Source
from penstock.core.records.deadletter import dead_letter_topic
from penstock.core.rollup.late import late_topic
from penstock.core.topic import TopicSpec
from penstock.errors import Problem

__all__ = ["Edge", "Graph"]


@dataclass(frozen=True, slots=True)
class Edge:
    """Records flow from one node to the other, both by name."""

    start: str
    end: str
    feedback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Everything an application declares. Equal graphs run the same application."""

    app: str
    data: tuple[Data, ...]
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def part(self, name: str) -> Part | None:
        """Return the part of this name, or None."""
        return next((part for part in self.parts if part.name == name), None)

    def find(self, name: str) -> Data | None:
        """Return the stream, table or lake table of this name, or None."""
        return next((data for data in self.data if data.name == name), None)

    @property
    def on_log(self) -> tuple[OnLog, ...]:
        """Return the streams and tables."""
        return tuple(data for data in self.data if not isinstance(data, Lake))

    @property
    def dead_letters(self) -> TopicSpec:
        """Return the topic for records that cannot be used."""
        return dead_letter_topic(self.app)

    @property
    def late_records(self) -> TopicSpec:
        """Return the topic for records that came too late."""
        return late_topic(self.app)

    @property
    def has_late_records(self) -> bool:
        """Return whether records may come too late for something: it needs a late ledger."""
        return any(part.has_late_records for part in self.parts)

    def changelog(self, service: Service) -> TopicSpec:
        """Return the topic that a service's state is rebuilt from."""
        return service.changelog(self.app)

    def positions(self, source: Source) -> TopicSpec:
        """Return the topic that keeps how far a source has been read."""
        return source.positions(self.app)

    def own_topics(self) -> dict[str, TopicSpec]:
        """Return the topics beside those of streams and tables, by what they are, in words."""
        found = {"the dead letters": self.dead_letters}
        if self.has_late_records:
            found["the late ledger"] = self.late_records
        for part in self.parts:
            for purpose, topic in part.own_topics(self.app).items():
                found[f"the {purpose} of {part.kind} {part.name!r}"] = topic
        return found

    def topics(self) -> tuple[TopicSpec, ...]:
        """Return every topic the application needs, its own included."""
        return (*(data.topic for data in self.on_log), *self.own_topics().values())

    def edges(self) -> Iterator[Edge]:
        """Yield the flow of records, part by part in order of declaration."""
        for part in self.parts:
            yield from (Edge(data.name, part.name) for data in part.inputs)
            for data in part.outputs:
                yield Edge(part.name, data.name, data.name in part.feedback)
