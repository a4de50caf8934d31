"""Which values may be keys of a look-up; others are refused before a store is asked."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from penstock.errors import DataError

__all__ = ["Key", "identity", "require_key"]

Key: TypeAlias = tuple[Any, ...]
"""The values of the fields of a key."""

_LONGEST = 4 << 10
_LARGEST_INT = 10**38
_TYPES = (str, bytes, int, bool, date, datetime, Decimal, UUID)


def require_key(key: Key, *, count: int, name: str) -> None:
    """Raise DataError where values are no key of so many fields."""
    if len(key) != count:
        raise _refusal(name, f"{len(key)} values were given, its key has {count}")
    for value in key:
        if wrong := _wrong(value):
            raise _refusal(name, wrong)


def identity(key: Key) -> tuple[tuple[type, Any], ...]:
    """Return what tells keys apart: 1, True and Decimal(1) are not the same."""
    return tuple((type(value), value) for value in key)


def _wrong(value: Any) -> str:
    """Return what is wrong with a value as a part of a key."""
    if type(value) not in _TYPES:
        return f"a {type(value).__name__} is no key"
    if isinstance(value, int) and abs(value) >= _LARGEST_INT:
        return "a number of more than 38 digits is no key"
    if isinstance(value, Decimal) and not value.is_finite():
        return f"{value} is no key"
    return _wrong_text(value) if isinstance(value, str | bytes) else ""


def _wrong_text(value: str | bytes) -> str:
    if len(value) > _LONGEST:
        return f"a key of {len(value)} characters or bytes is longer than {_LONGEST}"
    if isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value):
        return "a text that is no UTF-8 is no key"
    return ""


def _refusal(name: str, text: str) -> DataError:
    return DataError(f"look-up in {name}: {text}", code="lookup.key")
