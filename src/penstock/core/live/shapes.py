"""Conditions on what a value is: whether it is there, its type, size, remainder and bits."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.core.live.refusal import refuse
from penstock.core.live.values import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DATE,
    MISSING,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    kind_of,
)

__all__ = ["SHAPES", "exists"]

Test = Callable[[Any], bool]

_INT_32, _INT_64 = 1 << 31, 1 << 63
_WORD = 64

_TYPES: dict[str | int, str] = {
    1: "double", 2: "string", 3: "object", 4: "array", 5: "binData", 6: "undefined",
    7: "objectId", 8: "bool", 9: "date", 10: "null", 11: "regex", 12: "dbPointer",
    13: "javascript", 14: "symbol", 15: "javascriptWithScope", 16: "int", 17: "timestamp",
    18: "long", 19: "decimal", -1: "minKey", 127: "maxKey",
}  # fmt: skip
"""The types that a filter may name, by their numbers; a document holds some of them."""
_NAMES = frozenset(_TYPES.values()) | {"number"}
_OF_KIND = {
    NULL: "null", TEXT: "string", OBJECT: "object", ARRAY: "array", BYTES: "binData",
    BOOLEAN: "bool", DATE: "date",
}  # fmt: skip


def exists(value: Any) -> bool:
    """Return whether a value is there."""
    return value is not MISSING


def has_type(operand: Any, path: str) -> Test:
    """Return whether a value is of the type that is named, or of one of several."""
    named = operand if isinstance(operand, list) else [operand]
    if not named:
        raise refuse("name one type at least", operator="$type", path=path)
    wanted = {_type_named(each, path) for each in named}
    if "number" in wanted:
        wanted |= {"double", "int", "long", "decimal"}
    return lambda value: _type_of(value) in wanted


def _type_named(name: Any, path: str) -> str:
    number = int(name) if type(name) is float and name.is_integer() else name
    if type(number) is int and number in _TYPES:
        return _TYPES[number]
    if isinstance(name, str) and name in _NAMES:
        return name
    hint = f"types are {', '.join(sorted(_NAMES))}, or their numbers"
    raise refuse(f"{name!r} is not a type", operator="$type", path=path, hint=hint)


def _type_of(value: Any) -> str:
    if value is MISSING:
        return ""
    kind = kind_of(value)
    if kind != NUMBER:
        return _OF_KIND[kind]
    if type(value) is int:
        return "int" if -_INT_32 <= value < _INT_32 else "long"
    return "double" if type(value) is float else "decimal"


def has_size(operand: Any, path: str) -> Test:
    """Return whether a value is an array of so many elements; a text counts as no size, 0."""
    size = 0 if isinstance(operand, str) else _whole(operand)
    if size is None or size < 0:
        raise refuse("it takes a whole number from 0 on", operator="$size", path=path)
    return lambda value: type(value) is list and len(value) == size


def has_remainder(operand: Any, path: str) -> Test:
    """Return whether a number, cut to a whole one, leaves a remainder, with the number's sign."""
    pair = operand if isinstance(operand, list) else []
    numbers = [_cut(each) for each in pair]
    if len(numbers) != 2 or None in numbers or not numbers[0]:  # noqa: PLR2004 - a pair
        text = "it takes a divisor other than 0 and a remainder: [4, 0]"
        raise refuse(text, operator="$mod", path=path)
    divisor, remainder = abs(numbers[0]), numbers[1]

    def left(value: Any) -> bool:
        whole = _cut(value)
        if whole is None:
            return False
        rest = whole % divisor if whole >= 0 else -(-whole % divisor)
        return rest == remainder

    return left


def bits(name: str) -> Callable[[Any, str], Test]:
    """Return what makes the condition of a bit operator."""
    clear, some = "Clear" in name, "Any" in name

    def make(operand: Any, path: str) -> Test:
        mask = _mask(operand, name, path)

        def test(value: Any) -> bool:
            whole = _whole(value)
            if whole is None or not -_INT_64 <= whole < _INT_64:
                return False
            found = (~whole if clear else whole) & mask
            return bool(found) if some else found == mask

        return test

    return make


def _mask(operand: Any, name: str, path: str) -> int:
    """Return which bits are meant; a place behind the last is that of the sign."""
    places = operand if isinstance(operand, list) else []
    wholes = [_whole(each) for each in places]
    if isinstance(operand, list) and all(each is not None and each >= 0 for each in wholes):
        mask = 0
        for place in wholes:
            mask |= 1 << min(place or 0, _WORD)
        return mask
    whole = _whole(operand)
    if whole is not None and 0 <= whole < _INT_64:
        return whole
    raise refuse("it takes a number from 0 on, or places of bits", operator=name, path=path)


def _whole(value: Any) -> int | None:
    """Return a number that is whole; None: it is another value."""
    cut = _cut(value)
    return cut if cut is not None and cut == value else None


def _cut(value: Any) -> int | None:
    """Return a number without its fraction; None: it is not a number, or endless."""
    if type(value) is int:
        return value
    # What is not a number is not less than anything; a decimal would refuse to compare it.
    if type(value) is Decimal and not value.is_finite():
        return None
    known = type(value) in (float, Decimal) and abs(value) < _INT_64
    return int(value) if known else None


SHAPES: dict[str, Callable[[Any, str], Test]] = {
    "$type": has_type,
    "$size": has_size,
    "$mod": has_remainder,
    **{name: bits(name) for name in ("$bitsAllSet", "$bitsAnySet", "$bitsAllClear")},
    "$bitsAnyClear": bits("$bitsAnyClear"),
}
"""What each operator makes of its operand, at a path."""
