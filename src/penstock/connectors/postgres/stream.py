"""The changes of tables as they are committed, over a replication connection.

The server is told how far everything is on the log, so that it can throw away what is before it.
"""

import select
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import TYPE_CHECKING, Any

from penstock.connectors.captured import Captured
from penstock.connectors.connector import AWAY, Item
from penstock.connectors.postgres.address import Address, client, explain, explained
from penstock.connectors.postgres.pgoutput import (
    Begin,
    Changed,
    Commit,
    Message,
    Relation,
    Truncated,
    read_message,
)
from penstock.connectors.postgres.rows import use_plain_values
from penstock.connectors.postgres.seen import Seen
from penstock.connectors.postgres.slot import Slot, TableKey
from penstock.connectors.postgres.streamtable import StreamTable
from penstock.errors import DataError, TransientError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["ChangeStream", "StreamItem"]

_AT_ONCE = 2_000
_WAIT_SECONDS = 0.05
_REPLY_SECONDS = 5.0
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_KEEPALIVE, _DATA = Struct("!xQqB"), 25
_REPLY = Struct("!cQQQqB")


class StreamItem(Item, frozen=True):
    """A change, and its place: the transaction's commit, and which change of it."""

    lsn: int = 0
    index: int = 0
    trouble: str = ""

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return DataError(self.trouble, code="source.unchanged") if self.trouble else None


class ChangeStream:
    """One replication connection, from a position on."""

    def __init__(
        self,
        address: Address,
        slot: Slot,
        keys: Mapping[str, TableKey],
        *,
        seen: Seen,
        after: tuple[int, int] | None,
    ) -> None:
        self.seen = seen
        self.complaint = ""
        self.facts: dict[str, str] = {}
        self._keys = keys
        self._after = after or (0, 0)
        self._tables: dict[int, StreamTable | None] = {}
        self._transaction: Begin | None = None
        self._index = 0
        self._count = 0
        self._safe = self._told = 0
        self._told_at = time.monotonic()
        self._connection: Connection[Any] = address.connect(
            f"penstock source {slot.name}", replication="database"
        )
        try:
            self._begin(slot)
        except BaseException:
            self.close()
            raise

    def read(self) -> list[StreamItem]:
        """Return the next changes; those that were returned before are on the log now."""
        self._tell()
        found: list[StreamItem] = []
        with explained():
            while len(found) < _AT_ONCE:
                data = self._receive(wait=not found)
                if data is None:
                    break
                found += self._take(data)
        return found

    def close(self) -> None:
        """Close the connection; the slot stays, for the next one."""
        with suppress(Exception):
            self._connection.close()

    def _begin(self, slot: Slot) -> None:
        psycopg = client()
        sql, pq = psycopg.sql, psycopg.pq
        use_plain_values(self._connection.adapters)
        start = f"{self._after[0] >> 32:X}/{self._after[0] & 0xFFFFFFFF:X}"
        text = sql.SQL(
            "START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names {})"
        ).format(
            sql.Identifier(slot.name),
            sql.SQL(start),
            sql.Literal(f'"{slot.publication}"'),
        )
        result = self._connection.pgconn.exec_(text.as_bytes(self._connection))
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise explain(psycopg.errors.error_from_result(result))

    def _receive(self, *, wait: bool) -> bytes | None:
        """Return the next message of the server; None: there is none yet."""
        wire = self._connection.pgconn
        length, data = wire.get_copy_data(1)
        if length == 0:
            ready, _, _ = select.select([wire.socket], [], [], _WAIT_SECONDS if wait else 0)
            if not ready:
                return None
            wire.consume_input()
            length, data = wire.get_copy_data(1)
        if length < 0:
            raise TransientError("PostgreSQL ended the stream of changes", code=AWAY)
        return bytes(data) if length else None

    def _take(self, data: bytes) -> Iterator[StreamItem]:
        if data[:1] == b"w":
            message = read_message(data[_DATA:])
            if message is not None:
                yield from self._follow(message)
        elif data[:1] == b"k":
            end, _at, _asks = _KEEPALIVE.unpack(data)
            if self._transaction is None:
                self._safe = max(self._safe, end)

    def _follow(self, message: Message) -> Iterator[StreamItem]:
        match message:
            case Changed():
                table = self._tables.get(message.relation)
                if table is not None:
                    yield from self._changes(table, message)
            case Begin():
                self._transaction, self._index = message, 0
                self.seen.pass_by(message.lsn)
            case Commit():
                self._transaction = None
                self._safe = max(self._safe, message.end)
            case Relation():
                self._meet(message)
            case Truncated():
                yield from self._truncated(message)

    def _meet(self, relation: Relation) -> None:
        """Take note of a table, and tell where its columns are not what they were."""
        name = f"{relation.schema}.{relation.name}"
        key = self._keys.get(name)
        before = self._tables.get(relation.id)
        made = StreamTable(self._connection, name, relation, key) if key is not None else None
        self._tables[relation.id] = made
        if made is not None and before is not None and (text := made.differs_from(before)):
            self.facts["columns"] = f"{name}: {text}"

    def _changes(self, table: StreamTable, changed: Changed) -> Iterator[StreamItem]:
        transaction = self._transaction
        if transaction is None:
            raise TransientError("a change outside of a transaction", code="postgres.protocol")
        at = _EPOCH + timedelta(microseconds=transaction.at)
        for key, change, trouble in table.changes(changed, at):
            self._index += 1
            place = (transaction.lsn, self._index)
            if place <= self._after:
                continue
            if self.seen and self.seen.has(table.name, key(), transaction.xid):
                continue
            yield StreamItem(change, self._count, *place, trouble)
            self._count += 1

    def _truncated(self, message: Truncated) -> Iterator[StreamItem]:
        for number in message.relations:
            table, transaction = self._tables.get(number), self._transaction
            if table is None or transaction is None:
                continue
            self._index += 1
            place = (transaction.lsn, self._index)
            self.complaint = f"{table.name} was truncated: deletions of its rows were not told"
            if place > self._after:
                at = _EPOCH + timedelta(microseconds=transaction.at)
                yield StreamItem(Captured("truncate", table.name, None, at=at), self._count, *place)
                self._count += 1

    def _tell(self) -> None:
        """Tell the server how far everything is on the log; it also learns that we live."""
        now = time.monotonic()
        if self._safe == self._told and now - self._told_at < _REPLY_SECONDS:
            return
        wire = self._connection.pgconn
        micros = (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1)
        with explained():
            wire.put_copy_data(_REPLY.pack(b"r", self._safe, self._safe, self._safe, micros, 0))
            wire.flush()
        self._told, self._told_at = self._safe, now
