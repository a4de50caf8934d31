"""Tables that a worker has whole, in memory: broadcast tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.data import Table
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError
from penstock.services.usererrors import LOG, coordinates_of

__all__ = ["WholeTable", "WholeTables", "whole_tables"]


class WholeTable:
    """The rows of one table by their keys on the log; one thread writes, any may read.

    A row that does not decode is left out, and said in the log: whoever wrote it hears of it.
    """

    def __init__(self, table: Table[Any]) -> None:
        self.name = table.name
        self.topic = table.topic.name
        self.unreadable = 0
        """How many rows could not be read."""
        self._accept = JsonCodec(table.record, max_bytes=table.topic.max_record_bytes).accept
        self._rows: dict[bytes, Any] = {}

    def get(self, key: bytes) -> Any | None:
        """Return the row of a key, or None."""
        return self._rows.get(key)

    def values(self) -> Sequence[Any]:
        """Return all rows as they are now."""
        return list(self._rows.values())

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._rows)

    def apply(self, raw: RawRecord) -> None:
        """Take in a record of the table."""
        key, value = raw.key() or b"", raw.value()
        if value is None:
            self._rows.pop(key, None)
            return
        try:
            self._rows[key] = self._accept(key, value)
        except DataError as error:
            self.unreadable += 1
            self._rows.pop(key, None)
            LOG.warning("%s is left out: %s", coordinates_of(raw), error)

    def clear(self) -> None:
        """Forget all rows: they are read anew."""
        self._rows = {}


WholeTables = Mapping[str, WholeTable]
"""Whole tables by their topics."""


def whole_tables(service: Service) -> dict[str, WholeTable]:
    """Return the broadcast tables of a service, without rows yet."""
    return {table.topic.name: WholeTable(table) for table in service.broadcasts}
