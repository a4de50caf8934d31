"""Conditions that compare a value with another one: equal, less, greater, one of several."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

from penstock.core.live.values import MISSING, NULL, NUMBER, kind_of, order_of

__all__ = ["COMPARISONS", "equal_to", "one_of"]

Test = Callable[[Any], bool]

_PLAIN = (int, float)
_NUMBERS = (int, float, Decimal)


def equal_to(operand: Any) -> Test:
    """Return whether a value is equal to the operand; null is also what is missing."""
    if operand is None:
        return lambda value: value is None or value is MISSING
    if type(operand) is str:
        return lambda value: value == operand
    if type(operand) in _PLAIN and operand == operand:  # noqa: PLR0124
        return lambda value: value == operand and type(value) is not bool
    if type(operand) is bool:
        return lambda value: value is operand
    wanted, kind = order_of(operand), kind_of(operand)
    return lambda value: kind_of(value) == kind and order_of(value) == wanted


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    """Return what makes the condition that a value of the operand's kind is before or after it.

    What is missing is equal to null, where the condition includes equality.
    """

    def make(operand: Any) -> Test:
        if operand is None and compare(0, 0):
            return equal_to(None)
        if kind_of(operand) == NUMBER:
            if operand == operand:  # noqa: PLR0124
                return _number(compare, operand)
            return equal_to(operand) if compare(0, 0) else lambda _: False
        wanted, kind = order_of(operand), kind_of(operand)
        return lambda value: kind_of(value) == kind and compare(order_of(value), wanted)

    return make


def _number(compare: Callable[[Any, Any], bool], operand: Any) -> Test:
    """Return the condition on numbers, whatever their types are; what is no number fulfils none."""

    def plain(value: Any) -> bool:
        if type(value) in _PLAIN:
            return compare(value, operand)
        return type(value) is Decimal and value == value and compare(value, operand)  # noqa: PLR0124

    def decimal(value: Any) -> bool:
        known = type(value) in _NUMBERS and value == value  # noqa: PLR0124
        return known and compare(value, operand)

    return plain if type(operand) in _PLAIN else decimal


COMPARISONS: dict[str, Callable[[Any], Test]] = {
    "$eq": equal_to,
    "$gt": _ordered(gt),
    "$gte": _ordered(ge),
    "$lt": _ordered(lt),
    "$lte": _ordered(le),
}
"""What each operator makes of its operand."""


def one_of(operands: Sequence[Any], patterns: Sequence[Test] = ()) -> Test:
    """Return whether a value is equal to one of the operands, or one of the patterns matches."""
    orders = frozenset(order_of(each) for each in operands)
    null = (NULL,) in orders
    plain = all(type(each) is str for each in operands) and not patterns
    if plain:
        texts = frozenset(operands)
        return lambda value: type(value) is str and value in texts

    def found(value: Any) -> bool:
        if value is MISSING:
            return null
        return order_of(value) in orders or any(match(value) for match in patterns)

    return found
