"""Filters built in Python: ``(field("rank") > 3) & ~field("done").equals(True)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["FieldOf", "FilterOf", "field"]


@dataclass(frozen=True, slots=True)
class FilterOf:
    """A filter; ``document`` is it as a document. Join filters by ``&``, ``|`` and ``~``."""

    document: dict[str, Any]

    def __and__(self, other: FilterOf) -> FilterOf:
        """Return the filter that both fulfil."""
        return FilterOf({"$and": [self.document, other.document]})

    def __or__(self, other: FilterOf) -> FilterOf:
        """Return the filter that one of them fulfils."""
        return FilterOf({"$or": [self.document, other.document]})

    def __invert__(self) -> FilterOf:
        """Return the filter that everything else fulfils."""
        return FilterOf({"$nor": [self.document]})

    def __bool__(self) -> bool:
        """Refuse: ``and``, ``or`` and ``not`` do not join filters."""
        raise TypeError("join filters by &, | and ~, each side in parentheses")


@dataclass(frozen=True, slots=True)
class FieldOf:
    """A field of documents, by its path."""

    path: str

    def equals(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is this value."""
        return FilterOf({self.path: {"$eq": value}})

    def differs(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is another value, or missing."""
        return FilterOf({self.path: {"$ne": value}})

    def one_of(self, *values: Any) -> FilterOf:
        """Return the filter of documents where it is one of these values."""
        return FilterOf({self.path: {"$in": list(values)}})

    def matches(self, pattern: str, *, ignore_case: bool = False) -> FilterOf:
        """Return the filter of documents where it is a text that holds a match of a pattern."""
        return FilterOf({self.path: {"$regex": pattern, "$options": "i" if ignore_case else ""}})

    def exists(self) -> FilterOf:
        """Return the filter of documents that have it."""
        return FilterOf({self.path: {"$exists": True}})

    def __lt__(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is less."""
        return FilterOf({self.path: {"$lt": value}})

    def __le__(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is not greater."""
        return FilterOf({self.path: {"$lte": value}})

    def __gt__(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is greater."""
        return FilterOf({self.path: {"$gt": value}})

    def __ge__(self, value: Any) -> FilterOf:
        """Return the filter of documents where it is not less."""
        return FilterOf({self.path: {"$gte": value}})


def field(path: str) -> FieldOf:
    """Return a field of documents, to build filters with.

    Examples:
        >>> ((field("rank") > 3) & field("list").equals("home")).document
        {'$and': [{'rank': {'$gt': 3}}, {'list': {'$eq': 'home'}}]}
    """
    return FieldOf(path)
