"""How the values of documents compare: by their kind first, and then within it.

The kinds and their order are MongoDB's: nothing, null, numbers, texts, objects, arrays, booleans,
instants. Numbers compare by value, whatever their type is. Objects compare field by field, in the
order in which the fields stand. Of bytes the shorter ones come first.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import NoneType
from typing import Any, Final

__all__ = ["ARRAY", "DATE", "MISSING", "NULL", "NUMBER", "OBJECT", "Missing", "kind_of", "order_of"]


class Missing:
    """What is found where a document has no such field; there is one, `MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return how it is shown."""
        return "MISSING"

    def __reduce__(self) -> str:
        """Stay the one that there is, also in another process."""
        return "MISSING"


MISSING: Final = Missing()

UNDEFINED, NULL, NUMBER, TEXT, OBJECT, ARRAY, BYTES, BOOLEAN, DATE = range(9)
"""The kinds in their order. An empty array that is sorted by stands before null."""

_KINDS: dict[type, int] = {
    Missing: UNDEFINED,
    NoneType: NULL,
    int: NUMBER,
    float: NUMBER,
    Decimal: NUMBER,
    str: TEXT,
    dict: OBJECT,
    list: ARRAY,
    bytes: BYTES,
    bool: BOOLEAN,
    datetime: DATE,
    date: DATE,
}

Order = tuple[Any, ...]
"""What stands for a value where it is compared; the first entry is its kind."""


def kind_of(value: Any) -> int:
    """Return the kind of a value; TypeError where a document cannot hold it."""
    kind = _KINDS.get(type(value))
    if kind is None:
        raise TypeError(f"a document cannot hold a {type(value).__name__}")
    return kind


def order_of(value: Any) -> Order:
    """Return what compares as the value does; equal values have equal orders."""
    kind = kind_of(value)
    if kind == NUMBER:
        # What is not a number is less than every number, and equal to itself.
        return (NUMBER, 1, value) if value == value else (NUMBER, 0)  # noqa: PLR0124
    if kind == OBJECT:
        return (OBJECT, tuple(_entry(name, each) for name, each in _items(value)))
    if kind == ARRAY:
        return (ARRAY, tuple(order_of(each) for each in value))
    if kind == BYTES:
        return (BYTES, len(value), value)
    if kind == DATE:
        return (DATE, _instant(value))
    return (kind, value) if kind > NULL else (kind,)


def _entry(name: str, value: Any) -> Order:
    """Return the order of a field: its kind counts before its name, its name before its value."""
    found = order_of(value)
    return (found[0], name, found[1:])


def _items(value: Mapping[str, Any]) -> Any:
    return value.items()


def _instant(value: date) -> datetime:
    """Return an instant; a day is its midnight, and an instant without a zone is in UTC."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
