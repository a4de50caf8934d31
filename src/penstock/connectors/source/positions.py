"""How far each split of a source has been read, as its topic keeps it.

The topic ``<app>.<source>.positions`` is compacted and has one partition: under the name of each
split the latest position, JSON. Only the source writes to it, in the transactions of its records,
and it reads the topic after it has fenced the run before it: no other transaction is open then.
"""

from collections.abc import Iterable, Iterator

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.connectors.connector import Position
from penstock.errors import ConfigurationError

__all__ = ["dump_position", "load_positions", "read_positions"]


def dump_position(split: str, position: Position) -> tuple[bytes, bytes]:
    """Return a position as a record: key and value.

    ConfigurationError where the connector would get another value back after a restart.
    """
    try:
        value = msgspec.json.encode(position)
        same = position is not None and msgspec.json.decode(value) == position
    except (TypeError, ValueError, OverflowError, RecursionError):
        same = False
    if not same:
        raise ConfigurationError(
            f"split {split!r}: the position {position!r} is not a JSON value",
            code="source.position",
            hint="position_after(item) returns numbers, texts, lists, or dicts of texts to them",
        )
    return msgspec.json.encode(split), value


def load_positions(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[str, Position]:
    """Return the latest position of each split from the records of the topic, oldest first."""
    found: dict[str, Position] = {}
    for key, value in records:
        if key is not None and value is not None:
            found[msgspec.json.decode(key, type=str)] = msgspec.json.decode(value)
    return found


def read_positions(connection: Connection, topic: str) -> dict[str, Position]:
    """Return the committed position of each split; ConfigurationError: the topic is missing."""
    return load_positions(_records(connection, topic))


def _records(connection: Connection, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    for batch in LogReader(connection).batches(topic):
        yield from ((record.key(), record.value()) for record in batch)
