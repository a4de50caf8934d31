"""A live query as a value: a filter, an order, a part of the result, and the fields of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.core.live.filter import Node, compiled
from penstock.core.live.order import IDENTITY, Direction, Place, place_of, read_sort
from penstock.core.live.projection import read_fields
from penstock.core.live.reader import read_filter
from penstock.core.live.refusal import refuse
from penstock.core.live.results.grouping import Grouping, read_grouping
from penstock.core.live.written.builder import FilterOf
from penstock.core.live.written.text import filter_of_text

__all__ = ["LARGEST_WINDOW", "Query", "read_query"]

LARGEST_WINDOW = 10_000
"""How far the offset and the limit of a query may reach together."""

_KEYS = {"filter", "sort", "offset", "limit", "fields", "group", "aggregate"}


@dataclass(frozen=True)
class Query:
    """What a client asks for; ``read_query`` makes it of what the client sent.

    A query with an order, an offset or a limit has an ordered result; without an order it is
    ordered by identity. Any other has a set as its result.
    """

    given: Mapping[str, Any]
    """As the client sent it; a filter that was written as text is a document here."""
    node: Node = field(repr=False)
    sort: tuple[Direction, ...] = ()
    offset: int = 0
    limit: int | None = None
    fields: tuple[str, ...] = ()
    """Paths of the fields that the result has; empty: all."""
    grouping: Grouping | None = None
    """What is aggregated, and by which fields; None: the result has the documents themselves."""

    @property
    def ordered(self) -> bool:
        """Whether the result has an order."""
        return bool(self.sort) or self.offset > 0 or self.limit is not None

    @property
    def end(self) -> int | None:
        """How many documents reach to the end of the result, its offset included."""
        return None if self.limit is None else self.offset + self.limit

    @cached_property
    def matches(self) -> Callable[[Any], bool]:
        """Whether a document fulfils the filter."""
        return compiled(self.node)

    @cached_property
    def place(self) -> Callable[[Any], Place]:
        """Where a document stands in the order."""
        return place_of(self.sort)

    @cached_property
    def shown(self) -> Callable[[Any], Any]:
        """A document with the fields of the result only."""
        return read_fields(self.fields)

    def result(self, documents: Sequence[Any]) -> list[Any]:
        """Return the result over all documents, computed anew: what a live result must equal.

        Of a query that aggregates these are the documents of its groups.
        """
        found = [document for document in documents if self.matches(document)]
        if not self.ordered:
            return [self.shown(document) for document in found]
        ordered = sorted(found, key=self.place)
        return [self.shown(document) for document in ordered[self.offset : self.end]]


def read_query(given: Any) -> Query:
    """Return the query that a client sent; a DataError says what is wrong, and where.

    Keys are ``filter``, ``sort``, ``offset``, ``limit`` and ``fields``, or ``filter``, ``group``
    and ``aggregate``; all may be left out.
    """
    if not isinstance(given, dict):
        raise refuse("a query is an object", operator="query", path="")
    given = _as_document(given)
    if unknown := set(given) - _KEYS:
        text = f"{min(unknown)!r} is not part of a query"
        hint = f"a query has {', '.join(sorted(_KEYS))}"
        raise refuse(text, operator="query", path="", hint=hint)
    offset = _count(given, "offset") or 0
    limit = _count(given, "limit")
    if offset + (limit or 0) > LARGEST_WINDOW:
        text = f"offset and limit reach beyond {LARGEST_WINDOW:,} documents"
        raise refuse(text, operator="limit", path="", hint="ask for a narrower filter")
    return Query(
        given=given,
        node=read_filter(given.get("filter", {})),
        sort=read_sort(given.get("sort", [])),
        offset=offset,
        limit=limit,
        fields=_fields(given.get("fields", [])),
        grouping=read_grouping(given),
    )


def _as_document(given: dict[str, Any]) -> dict[str, Any]:
    """Return a query with its filter as a document; it may be a text, or built in Python."""
    written = given.get("filter")
    if isinstance(written, FilterOf):
        return {**given, "filter": written.document}
    return {**given, "filter": filter_of_text(written)} if isinstance(written, str) else given


def _count(given: Mapping[str, Any], name: str) -> int | None:
    count = given.get(name)
    if count is None:
        return None
    if type(count) is not int or count < 0:
        text = f"it takes a whole number from 0 on, not {count!r}"
        raise refuse(text, operator=name, path="")
    return count


def _fields(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(_is_path(each) for each in given):
        raise refuse("it takes a list of paths", operator="fields", path="")
    return () if not given else (IDENTITY, *(each for each in given if each != IDENTITY))


def _is_path(given: Any) -> bool:
    return isinstance(given, str) and bool(given) and not given.startswith("$")
