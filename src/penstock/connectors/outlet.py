"""Where lines go: records onto the stream, all others to the dead-letter topic."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle
from typing import Literal, Protocol, TypeAlias

from penstock.connectors.intake import Entry, Intake
from penstock.connectors.lines import Line
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.errors import DataError

__all__ = ["Made", "Outcome", "Outlet", "Sending", "source_topic"]

Outcome = Literal["passed", "filtered", "dead_lettered"]
Made: TypeAlias = Entry | DataError | None
"""What a line gives: a record, the reason why it gives none, or nothing."""


class Sending(Protocol):
    """A producer, transactional or not."""

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        partition: int | None = None,
    ) -> None:
        """Queue one record."""


def source_topic(name: str) -> str:
    """Return what the dead letters of a source have for a topic: they never stood on one."""
    return f"source:{name}"


class Outlet:
    """Writes what becomes of each line of one source."""

    def __init__(
        self,
        graph: Graph,
        source: Source,
        producer: Sending,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._intake = Intake(source)
        self._source = source
        self._into = source.into.topic
        # The declared number is the real one; asking Kafka would fail while it is away.
        by_turns = self._into.partitioning == "round_robin"
        self._turns = cycle(range(self._into.partitions)) if by_turns else None
        self._dead_letters = graph.dead_letters.name
        self._producer = producer
        self._now = now

    def write(self, line: Line, *, at: int) -> Outcome:
        """Queue what the line gives; ``at`` is its offset where it becomes a dead letter."""
        return self.send(line, self.make(line), at=at)

    def make(self, line: Line) -> Made:
        """Return what the line gives: this runs the user's code, and sends nothing."""
        try:
            return self._intake.take(line)
        except DataError as error:
            return error

    def send(self, line: Line, made: Made, *, at: int) -> Outcome:
        """Queue what :meth:`make` gave."""
        if isinstance(made, DataError):
            self._refuse(line, made, at)
            return "dead_lettered"
        if made is None:
            return "filtered"
        self._producer.send(
            self._into.name,
            key=made.key,
            value=made.value,
            partition=next(self._turns) if self._turns else None,
        )
        return "passed"

    def _refuse(self, line: Line, error: DataError, at: int) -> None:
        name = self._source.name
        headers = dead_letter_headers(
            error, Coordinates(source_topic(name), 0, at), part=name, at=self._now()
        )
        self._producer.send(self._dead_letters, key=None, value=line.content, headers=headers)
