"""One cell of the grid: the rows of one partition, and the queries of one row of the grid.

Each write is compared with the queries that it may concern, as it was and as it is. A new query is
compared with all rows that there are; what is written later comes later on the same log, so nothing
is missed between and nothing is told twice.
"""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.core.grid.directory import Directory
from penstock.core.grid.documents import decode_document, encode_document
from penstock.core.grid.messages import Matched, Placed
from penstock.core.live.index import QueryIndex
from penstock.core.live.order import IDENTITY
from penstock.core.live.query import Query, read_query
from penstock.core.operators.operator import Arrival, MachineOutput, Result
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.errors import DataError

__all__ = ["MOST_QUERIES", "CellMachine"]

MOST_QUERIES = 100_000
"""How many queries a cell takes; further ones are refused."""

ROWS, QUERIES = 0, 1
"""The numbers of the inputs."""


class CellMachine(SteadyMachine):
    """Compares writes with queries; the rows and the queries are in its store."""

    def __init__(self, store: Store, read: Callable[[Any], Any]) -> None:
        self._read = read
        self._rows = _Shelf(store, b"d")
        self._asked = _Shelf(store, b"q")
        self._seen = _Seen()
        self._queries: dict[str, tuple[int, Query]] = {}
        self._index = QueryIndex()
        super().__init__(store, (self._rows, self._asked, self._seen))
        for key, value in self._asked.items():
            life, text = decode(value)
            self._follow(key.decode(), life, read_query(decode_document(text)))

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take a write of the table, or what is said of a query."""
        if arrival.input == ROWS:
            self._write(arrival, given)
            return
        self._column = arrival.partition
        placed: Placed = arrival.record
        for found in self._placed(placed):
            given.results.append(Result("add", found, arrival.time))

    def _write(self, arrival: Arrival, given: MachineOutput) -> None:
        """Tell the queries that a row concerned, or concerns now."""
        document = None if arrival.record is None else self._read(arrival.record)
        kept = self._rows.get(arrival.key)
        before = None if kept is None else decode_document(kept.decode())
        self._seen.offset = arrival.offset
        if document is None and before is None:
            return
        operation = "delete" if document is None else "insert" if before is None else "update"
        text = None if document is None else encode_document(document)
        if text is None:
            self._rows.delete(arrival.key)
        else:
            self._rows.put(arrival.key, text.encode())
        shown: Any = before if document is None else document
        identity = encode_document(shown[IDENTITY])
        for name in self._concerned(before, document):
            found = Matched(
                id=name,
                life=self._queries[name][0],
                column=arrival.partition,
                what="write",
                offset=arrival.offset,
                operation=operation,
                identity=identity,
                document=text,
            )
            given.results.append(Result("add", found, arrival.time))

    def _concerned(self, before: Any, document: Any) -> list[str]:
        names: set[Any] = set()
        for each in (before, document):
            if each is None:
                continue
            for name in self._index.candidates(each) - names:
                if self._queries[str(name)][1].matches(each):
                    names.add(name)
        return sorted(names)

    def _placed(self, placed: Placed) -> Iterator[Matched]:
        name = placed.id
        life = self._queries[name][0] if name in self._queries else -1
        if placed.what == "open" and placed.life > life:
            yield from self._open(placed)
        elif placed.what == "again" and placed.life == life:
            yield self._said(placed, "again")
        elif placed.what == "close" and placed.life >= life:
            if life >= 0:
                self._index.remove(name)
                del self._queries[name]
                self._asked.delete(name.encode())
            yield self._said(placed, "close")

    def _open(self, placed: Placed) -> Iterator[Matched]:
        """Keep a query, and tell which rows it finds."""
        if placed.id not in self._queries and len(self._queries) >= MOST_QUERIES:
            hint = "divide the queries among more rows: app.live_queries(..., rows=3)"
            text = f"a cell has {MOST_QUERIES:,} queries already"
            raise DataError(text, code="live.full", hint=hint)
        query = read_query(decode_document(placed.query))
        self._asked.put(placed.id.encode(), encode([placed.life, placed.query]))
        if placed.id in self._queries:
            self._index.remove(placed.id)
        self._follow(placed.id, placed.life, query)
        yield self._said(placed, "open", query=placed.query)
        for value in self._rows.values():
            text = value.decode()
            document = decode_document(text)
            if query.matches(document):
                identity = encode_document(document[IDENTITY])
                yield self._said(placed, "first", identity=identity, document=text)
        yield self._said(placed, "ready")

    def _follow(self, name: str, life: int, query: Query) -> None:
        self._queries[name] = (life, query)
        self._index.add(name, query.node)

    def _said(self, placed: Placed, what: str, **more: Any) -> Matched:
        return Matched(
            id=placed.id,
            life=placed.life,
            column=self._column,
            what=what,
            offset=self._seen.offset,
            **more,
        )


class _Shelf(Directory):
    """A directory as something that a machine keeps."""

    def trim(self, most: int) -> None:
        """Forget nothing: the values are in the store, and the keys are needed."""

    def sweep(self, mark: int) -> None:
        """Forget nothing: rows and queries have no age."""

    def slots(self) -> Any:
        """Return nothing: the directory reads itself."""
        return None

    def begin(self, slots: Any, mark: int) -> None:
        """Do nothing."""


class _Seen:
    """The offset of the last write that was seen."""

    offset = -1

    def flush(self) -> None:
        """Do nothing: the head has it."""

    def trim(self, most: int) -> None:
        """Do nothing."""

    def sweep(self, mark: int) -> None:
        """Do nothing."""

    def slots(self) -> Any:
        """Return the offset."""
        return self.offset

    def begin(self, slots: Any, mark: int) -> None:  # noqa: ARG002
        """Go on from an offset."""
        self.offset = slots
