"""One pass over the changes of tables: rows that are there, then the stream; what it left out.

A position says which keys were read by which transaction, and which change of which transaction
of the stream came last: ``{"looks": {...}, "lsn": 12345, "index": 3}``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from penstock.connectors.connector import Item
from penstock.connectors.postgres.address import Address, explained
from penstock.connectors.postgres.seen import Look, Seen
from penstock.connectors.postgres.slot import Slot, ensure_slot, table_keys
from penstock.connectors.postgres.snapshot import Snapshot, key_loader
from penstock.connectors.postgres.stream import ChangeStream, StreamItem
from penstock.errors import ConfigurationError

__all__ = ["ChangesReading"]

Looks: TypeAlias = dict[str, list[list[Any]]]
"""Of each table, per transaction that read rows: up to which key (texts), what it saw, and when."""


class ChangesReading:
    """The only split of a source of changes, from a position on."""

    ended = False

    def __init__(self, address: Address, slot: Slot, position: Mapping[str, Any] | None) -> None:
        self._address, self._slot = address, slot
        self._looks, self._at = _read_position(position)
        begun = position is not None
        connection = address.connect(f"penstock source {slot.name}")
        with explained(), connection:
            ensure_slot(connection, slot, begun=begun)
            self._keys = table_keys(connection, slot)
        self._snapshot: Snapshot | None = None
        self._stream: ChangeStream | None = None
        if slot.snapshot and self._at is None:
            self._snapshot = Snapshot(address, slot, self._keys, self._looks)
        else:
            self._stream = self._open_stream()

    @property
    def complaint(self) -> str:
        """Return what is wrong although changes come."""
        return self._stream.complaint if self._stream else ""

    @property
    def facts(self) -> dict[str, str]:
        """Return where it is."""
        if self._snapshot is not None:
            return {"phase": f"rows that are there: {self._snapshot.table}"}
        if self._stream is not None:
            return {"phase": "changes", **self._stream.facts}
        return {}

    def read(self) -> Sequence[Item]:
        """Return the next changes; what was returned before is on the log now."""
        if self._snapshot is not None:
            if rows := self._snapshot.read():
                return rows
            self._looks = self._snapshot.finished()
            self._snapshot.close()
            self._snapshot, self._stream = None, self._open_stream()
        return self._stream.read() if self._stream is not None else ()

    def position_after(self, item: Item) -> dict[str, Any]:
        """Return the position behind an item."""
        if isinstance(item, StreamItem):
            # Also what comes right behind this item may have been read with the rows.
            passed = item.lsn > max(
                (each[2] for own in self._looks.values() for each in own), default=0
            )
            looks = {} if passed else self._looks
            return {"looks": looks, "lsn": item.lsn, "index": item.index}
        if self._snapshot is None:
            raise TypeError("a row that was there, after the changes have begun")
        return {"looks": self._snapshot.looks_after(item)}

    def close(self) -> None:
        """Close the connections."""
        for each in (self._snapshot, self._stream):
            if each is not None:
                each.close()

    def _open_stream(self) -> ChangeStream:
        seen = self._seen()
        return ChangeStream(self._address, self._slot, self._keys, seen=seen, after=self._at)

    def _seen(self) -> Seen:
        if not self._looks:
            return Seen({})
        connection = self._address.connect(f"penstock source {self._slot.name}")
        with explained(), connection:
            load = {table: key_loader(connection, key) for table, key in self._keys.items()}
            return Seen(
                {
                    table: [
                        (None if key is None else load[table](key), Look.read(text, end))
                        for key, text, end in several
                    ]
                    for table, several in self._looks.items()
                    if table in load
                }
            )


def _read_position(position: Mapping[str, Any] | None) -> tuple[Looks, tuple[int, int] | None]:
    match position:
        case None:
            return {}, None
        case {"looks": dict(looks), "lsn": int(lsn), "index": int(index)}:
            return looks, (lsn, index)
        case {"looks": dict(looks)}:
            return looks, None
    raise ConfigurationError(
        f"the position {position!r} is none of changes of PostgreSQL",
        code="source.position",
        hint="give the source another name, and another slot: it begins anew",
    )
