"""What a query aggregates, and by which fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from penstock.core.live.order import IDENTITY
from penstock.core.live.refusal import refuse
from penstock.core.live.values import MISSING

__all__ = ["MOST_AGGREGATES", "Grouping", "How", "LiveAggregate", "read_grouping", "value_at"]

How = Literal["count", "sum", "mean", "min", "max"]
_OF_FIELDS = ("sum", "mean", "min", "max")
MOST_AGGREGATES = 20
"""So many aggregates, and so many fields of a group, has a query at most."""


@dataclass(frozen=True, slots=True)
class LiveAggregate:
    """One aggregate: its name in the result, and what it is of; ``path`` is empty for a count."""

    name: str
    how: How
    path: str = ""


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a query aggregates; without fields there is one group of everything."""

    fields: tuple[str, ...]
    aggregates: tuple[LiveAggregate, ...]

    def key(self, document: Any) -> tuple[Any, ...]:
        """Return the values that say which group a document belongs to; missing ones are null."""
        found = (value_at(document, path) for path in self.fields)
        return tuple(None if value is MISSING else value for value in found)

    def identity(self, key: Sequence[Any]) -> Any:
        """Return the identity of a group."""
        return dict(zip(self.fields, key, strict=True)) if self.fields else None


def value_at(document: Any, path: str) -> Any:
    """Return what stands at a path of objects, or MISSING; arrays are not opened."""
    for name in path.split("."):
        if type(document) is not dict or name not in document:
            return MISSING
        document = document[name]
    return document


def read_grouping(given: Mapping[str, Any]) -> Grouping | None:
    """Return what a query aggregates; None: nothing. A DataError says what is wrong."""
    if "aggregate" not in given:
        if given.get("group"):
            raise _wrong("group", "it needs an aggregate", '{"aggregate": {"n": {"count": true}}}')
        return None
    for name in ("sort", "offset", "limit", "fields"):
        if given.get(name):
            raise _wrong(name, "an aggregate has none: its groups are a set")
    fields = _fields(given.get("group", []))
    asked = given["aggregate"]
    if not isinstance(asked, Mapping) or not 1 <= len(asked) <= MOST_AGGREGATES:
        text = f"it takes an object with 1 to {MOST_AGGREGATES} aggregates"
        raise _wrong("aggregate", text, '{"open": {"count": true}}')
    return Grouping(fields, tuple(_aggregate(*each, fields) for each in asked.items()))


def _aggregate(name: Any, given: Any, fields: Sequence[str]) -> LiveAggregate:
    if not isinstance(name, str) or not name or name.startswith("$") or "." in name:
        raise _wrong("aggregate", f"{name!r} is no name of an aggregate")
    if name == IDENTITY or name in fields:
        raise _wrong("aggregate", f"the result has a field {name!r} already", "choose another name")
    if not isinstance(given, Mapping) or len(given) != 1:
        raise _wrong(f"aggregate.{name}", "it takes one aggregate", '{"sum": "points"}')
    ((how, of),) = given.items()
    if how == "count":
        if of is not True:
            raise _wrong(f"aggregate.{name}", "count takes true")
        return LiveAggregate(name, "count")
    if how not in _OF_FIELDS:
        known = ", ".join(("count", *_OF_FIELDS))
        raise _wrong(f"aggregate.{name}", f"{how!r} is no aggregate", f"there are {known}")
    if not _is_path(of):
        raise _wrong(f"aggregate.{name}", f"{how} takes the path of a field")
    return LiveAggregate(name, cast("How", how), of)


def _fields(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list | tuple) else None
    if listed is None or not all(_is_path(each) for each in listed):
        raise _wrong("group", "it takes a list of paths", '{"group": ["list"]}')
    if len(set(listed)) < len(listed) or len(listed) > MOST_AGGREGATES or IDENTITY in listed:
        raise _wrong("group", f"it takes at most {MOST_AGGREGATES} different paths, without _id")
    return tuple(listed)


def _is_path(given: Any) -> bool:
    return isinstance(given, str) and bool(given) and not given.startswith("$")


def _wrong(operator: str, text: str, hint: str = "") -> Exception:
    return refuse(text, operator=operator, path="", hint=hint)
