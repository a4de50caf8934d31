"""A query as those share it who ask the same: its text in one form, and a name made from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from penstock.core.grid.documents import decode_document, encode_document
from penstock.core.live.query import read_query
from penstock.core.live.written.text import filter_of_text

__all__ = ["SharedQuery", "shared_query"]

_DIGITS = 24


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """A query that was read and found right."""

    name: str
    """The same for all who ask the same of the same rows."""
    text: str
    """As the services are asked."""
    ordered: bool


def shared_query(
    text: str, *, rule: str = "", claims: Mapping[str, Any] | None = None
) -> SharedQuery:
    """Return the query that a JSON text is; DataError: what is wrong with it, and where.

    With a ``rule`` it is a query of the rows for which the rule holds, with these claims.
    """
    query = read_query(decode_document(text))
    if rule:
        seen = filter_of_text(rule, claims=claims or {})
        query = read_query(
            {**query.given, "filter": {"$and": [query.given.get("filter", {}), seen]}}
        )
    members = ("filter", "sort", "offset", "limit", "fields", "group", "aggregate")
    given: Mapping[str, Any] = query.given
    # What is left out and what is empty mean the same. The order of the keys inside a filter
    # counts in comparisons with whole objects, and stays.
    kept = {name: given[name] for name in members if given.get(name)}
    if query.limit == 0:
        kept["limit"] = 0
    written = encode_document(kept)
    digest = sha256(written.encode()).hexdigest()
    return SharedQuery(f"q{digest[:_DIGITS]}", written, query.ordered)
