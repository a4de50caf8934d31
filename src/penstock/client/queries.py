"""SQL over the tables and states that a gateway shows: typed rows, with positions and age."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar, overload
from urllib.parse import urlencode

import msgspec

from penstock.client.answers import AtLeast, Positions, Sent, offsets_text
from penstock.client.asking import Asking, SyncAsking
from penstock.client.connection import Request
from penstock.client.refusals import read_json
from penstock.core.options import span_of

__all__ = ["Queries", "Selected", "SyncQueries"]

T = TypeVar("T")
Span = str | timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Generic[T]):
    """The rows of an answer, and how far each relation was.

    Examples:
        >>> found = Selected(rows=[{"device": "roof"}])
        >>> [row["device"] for row in found]
        ['roof']
    """

    rows: Sequence[T]
    columns: tuple[str, ...] = ()
    more: bool = False
    """Whether there are further rows, which the gateway did not send."""
    positions: Mapping[str, Positions] = field(default_factory=dict)
    """For each relation: everything before these offsets is in the answer."""
    stale_seconds: float | None = None
    """How old the oldest of the relations may be, at most; None: not known."""
    stale: bool = False
    """Whether a standby answered for some of it, because an owner is away."""
    left_out: int = 0
    """How many rows of relations could not be read."""

    def __iter__(self) -> Iterator[T]:
        """Return an iterator over the rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.rows)


class _Column(msgspec.Struct):
    name: str


class _Relation(msgspec.Struct):
    positions: dict[str, dict[int, int]]
    left_out: int = 0


class _Answer(msgspec.Struct):
    rows: msgspec.Raw
    columns: list[_Column]
    more: bool
    stale_seconds: float | None
    relations: dict[str, _Relation]
    stale: bool = False


_ANSWER = msgspec.json.Decoder(_Answer)


class Queries(Asking):
    """The requests that ask in SQL."""

    @overload
    async def sql(
        self, query: str, *, at_least: AtLeast = (), max_stale: Span = None, wait: Span = None
    ) -> Selected[dict[str, Any]]: ...
    @overload
    async def sql(
        self,
        query: str,
        *,
        into: type[T],
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Selected[T]: ...
    async def sql(
        self,
        query: str,
        *,
        into: type[Any] | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Selected[Any]:
        """Return the rows of a SELECT over tables and states, as docs/queries.md describes it.

        A row is a dict, or an object of ``into``: a class with a field for each column, which its
        values are checked against. ``at_least`` and ``max_stale`` are those of ``get``. A mistake
        in the query is a DataError, which says where; so is a query that takes too much.
        """
        asked = _freshness(at_least, max_stale=max_stale, wait=wait)
        request = Request(
            method="POST",
            target=f"/v1/sql?{urlencode(asked)}" if asked else "/v1/sql",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode({"query": query}),
        )
        reply = await self._wire.ask(request)
        answer = read_json(_ANSWER, reply.body)
        kind: Any = dict[str, Any] if into is None else into
        rows = read_json(msgspec.json.Decoder(list[kind]), bytes(answer.rows))
        return Selected(
            rows=rows,
            columns=tuple(column.name for column in answer.columns),
            more=answer.more,
            positions={name: each.positions for name, each in answer.relations.items()},
            stale_seconds=answer.stale_seconds,
            stale=answer.stale,
            left_out=sum(each.left_out for each in answer.relations.values()),
        )


class SyncQueries(SyncAsking):
    """The same, for callers without an event loop."""

    _queries: Queries

    @overload
    def sql(
        self, query: str, *, at_least: AtLeast = (), max_stale: Span = None, wait: Span = None
    ) -> Selected[dict[str, Any]]: ...
    @overload
    def sql(
        self,
        query: str,
        *,
        into: type[T],
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Selected[T]: ...
    def sql(
        self,
        query: str,
        *,
        into: type[Any] | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Selected[Any]:
        """See ``Client.sql``."""
        asked: Any = {"at_least": at_least, "max_stale": max_stale, "wait": wait}
        asked |= {} if into is None else {"into": into}
        return self._loop.run(self._queries.sql(query, **asked))


def _freshness(at_least: AtLeast, *, max_stale: Span, wait: Span) -> dict[str, str]:
    places = [at_least] if isinstance(at_least, Sent) else list(at_least)
    found = {"at_least": offsets_text(places)} if places else {}
    for name, span in (("max_stale", max_stale), ("wait", wait)):
        if span is not None:
            found[name] = f"{span_of(span) // timedelta(milliseconds=1)}ms"
    return found
