"""The results of queries: what cells say of them, in; what is new, out, numbered without a gap.

A query begins as soon as each column has told which rows it finds. All that match are in the store;
of an ordered result with a limit only what the limit reaches, and a reserve, is in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, cast

from penstock.core.grid.directory import Directory
from penstock.core.grid.documents import decode_document, encode_document
from penstock.core.grid.messages import Matched, News
from penstock.core.live.query import Query, read_query
from penstock.core.live.result import LiveResult, Operation, live_result
from penstock.core.operators.operator import Arrival, MachineOutput, Result
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store

__all__ = ["ResultMachine"]


@dataclass(slots=True)
class _Followed:
    """One query and its result."""

    life: int
    text: str
    query: Query
    members: Directory
    number: int = 0
    ready: dict[int, int] = field(default_factory=dict)
    """The columns that have told what they find, with the offsets they had seen."""
    closed: set[int] = field(default_factory=set)
    live: LiveResult | None = None


class ResultMachine(SteadyMachine):
    """Keeps the results of queries; ``columns`` is how many cells tell about each of them."""

    def __init__(self, store: Store, columns: int) -> None:
        self._columns = columns
        self._followed: dict[str, _Followed] = {}
        self._dirty: set[str] = set()
        super().__init__(store, ())

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take what a cell says of a query."""
        said: Matched = arrival.record
        for news in self._heard(said):
            given.results.append(Result("add", news, arrival.time))

    def flush(self) -> None:
        """Write what changed."""
        for name in self._dirty:
            if (found := self._followed.get(name)) is None:
                self._store.delete(_head(name))
                continue
            found.members.flush()
            head = [
                found.life,
                found.text,
                found.number,
                sorted(found.ready.items()),
                sorted(found.closed),
            ]
            self._store.put(_head(name), encode(head))
        self._dirty.clear()
        super().flush()

    def trim(self, most: int) -> None:
        """Forget the results that are in the store, where there are more than so many."""
        if len(self._followed) > most:
            self._followed = {name: self._followed[name] for name in self._dirty}

    def _heard(self, said: Matched) -> Iterator[News]:
        found = self._of(said)
        if found is None or said.life < found.life:
            return
        self._dirty.add(said.id)
        if said.what == "close":
            yield from self._close(said, found)
        elif found.closed:
            return
        elif said.what == "first":
            found.members.put(said.identity.encode(), (said.document or "").encode())
        elif said.what == "ready":
            found.ready[said.column] = said.offset
            if len(found.ready) == self._columns:
                yield from self._whole(said.id, found)
        elif said.what == "write":
            yield from self._write(said, found)
        elif said.what == "again" and len(found.ready) == self._columns:
            yield from self._whole(said.id, found)

    def _write(self, said: Matched, found: _Followed) -> Iterator[News]:
        document = None if said.document is None else decode_document(said.document)
        key = said.identity.encode()
        begun = len(found.ready) == self._columns
        live = self._live(found) if begun else None
        if document is not None and found.query.matches(document):
            found.members.put(key, (said.document or "").encode())
        else:
            found.members.delete(key)
        if said.column in found.ready:
            found.ready[said.column] = said.offset
        if live is None:
            return
        identity = _decode_identity(said.identity)
        events = live.write(cast("Operation", said.operation), identity, document)
        for left, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
            yield self._news(
                said.id,
                found,
                event.match,
                operation=event.operation,
                index=event.index,
                document=encode_document(event.document),
                positions={str(said.column): said.offset},
                more=left > 0,
            )

    def _whole(self, name: str, found: _Followed) -> Iterator[News]:
        """Give the whole result."""
        yield self._news(name, found, "begin")
        ordered = found.query.ordered
        for index, document in enumerate(self._live(found).documents):
            place = index if ordered else None
            text = encode_document(document)
            yield self._news(name, found, "first", index=place, document=text)
        positions = {str(column): offset for column, offset in sorted(found.ready.items())}
        yield self._news(name, found, "ready", positions=positions)

    def _close(self, said: Matched, found: _Followed) -> Iterator[News]:
        if not found.closed:
            yield self._news(said.id, found, "end")
            found.members.clear()
        found.closed.add(said.column)
        if len(found.closed) == self._columns:
            del self._followed[said.id]

    def _news(self, name: str, found: _Followed, what: str, **more: Any) -> News:
        found.number += 1
        return News(id=name, life=found.life, number=found.number, what=what, **more)

    def _live(self, found: _Followed) -> LiveResult:
        """Return the result, as it was left."""
        if found.live is None:
            found.live = live_result(found.query, refill=_first_of(found))
            found.live.begin(_documents(found))
        return found.live

    def _of(self, said: Matched) -> _Followed | None:
        """Return the query that a cell speaks of; a new life replaces the one before."""
        found = self._followed.get(said.id) or self._load(said.id)
        if said.what == "open" and (found is None or said.life > found.life):
            if found is not None:
                found.members.clear()
            found = _Followed(said.life, said.query, _query(said.query), self._members(said.id))
            self._followed[said.id] = found
        return found

    def _load(self, name: str) -> _Followed | None:
        if name in self._dirty or (head := self._store.get(_head(name))) is None:
            return None
        life, text, number, ready, closed = decode(head)
        found = _Followed(life, text, _query(text), self._members(name), number)
        found.ready, found.closed = dict(ready), set(closed)
        self._followed[name] = found
        return found

    def _members(self, name: str) -> Directory:
        return Directory(self._store, b"m" + name.encode() + b"\x00")


def _head(name: str) -> bytes:
    return b"r" + name.encode()


def _query(text: str) -> Query:
    return read_query(decode_document(text))


def _decode_identity(text: str) -> Any:
    return decode_document(f'{{"it":{text}}}')["it"]


def _documents(found: _Followed) -> Iterator[Any]:
    for value in found.members.values():
        yield decode_document(value.decode())


def _first_of(found: _Followed) -> Callable[[int], list[Any]]:
    """Return what reads the first members in the order of the query."""

    def refill(count: int) -> list[Any]:
        return nsmallest(count, _documents(found), key=found.query.place)

    return refill
