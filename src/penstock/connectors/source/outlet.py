"""Where items go: records onto the stream, all others to the dead-letter topic."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle
from typing import Literal, Protocol, TypeAlias

import msgspec

from penstock.connectors.connector import WHOLE, Item
from penstock.connectors.source.intake import Intake, LogEntry
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.errors import DataError

__all__ = ["Made", "Outcome", "Outlet", "Sending", "source_topic"]

Outcome = Literal["passed", "filtered", "dead_lettered"]
Made: TypeAlias = LogEntry | DataError | None
"""What an item gives: a record, the reason why it gives none, or nothing."""


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


def source_topic(name: str, split: str = WHOLE) -> str:
    """Return what a dead letter of a source has for a topic, because it never stood on one."""
    return f"source:{name}/{split}" if split else f"source:{name}"


class Outlet:
    """Writes what becomes of each item of one source."""

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

    def make(self, item: Item) -> Made:
        """Return what the item gives: this runs the user's code, and sends nothing."""
        try:
            return self._intake.take(item)
        except DataError as error:
            return error

    def send(self, item: Item, made: Made, *, at: int, split: str = WHOLE) -> Outcome:
        """Queue what :meth:`make` gave; ``at`` is its offset where that is a dead letter."""
        if isinstance(made, DataError):
            self._refuse(item, made, Coordinates(source_topic(self._source.name, split), 0, at))
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

    def _refuse(self, item: Item, error: DataError, place: Coordinates) -> None:
        headers = dead_letter_headers(error, place, part=self._source.name, at=self._now())
        value = _shown(item.content, most=self._into.max_record_bytes)
        self._producer.send(self._dead_letters, key=None, value=value, headers=headers)


def _shown(content: object, *, most: int) -> bytes:
    """Return an item's bytes; what is not bytes as JSON, or as a text that a person can read."""
    if isinstance(content, bytes):
        return content
    try:
        value = msgspec.json.encode(content)
    except Exception:  # noqa: BLE001 - a stranger's value: whatever is wrong with it, it is shown
        return f"a {type(content).__name__}, which cannot be shown as JSON".encode()
    return value if len(value) <= most else value[:most]
