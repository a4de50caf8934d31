"""Conditions that compare a value with another one: equal, less, greater, one of several."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.live.values import MISSING, NULL, kind_of, order_of

__all__ = ["COMPARISONS", "equal_to", "one_of"]

Test = Callable[[Any], bool]

_PLAIN = (int, float)


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


def less(operand: Any) -> Test:
    """Return whether a value of the operand's kind is less."""
    if _is_number(operand):
        return lambda value: type(value) in _PLAIN and value < operand
    wanted, kind = order_of(operand), kind_of(operand)
    return lambda value: kind_of(value) == kind and order_of(value) < wanted


def greater(operand: Any) -> Test:
    """Return whether a value of the operand's kind is greater."""
    if _is_number(operand):
        return lambda value: type(value) in _PLAIN and value > operand
    wanted, kind = order_of(operand), kind_of(operand)
    return lambda value: kind_of(value) == kind and order_of(value) > wanted


def at_most(operand: Any) -> Test:
    """Return whether a value is less or equal; what is missing is equal to null."""
    if operand is None:
        return equal_to(None)
    if _is_number(operand):
        return lambda value: type(value) in _PLAIN and value <= operand
    wanted, kind = order_of(operand), kind_of(operand)
    return lambda value: kind_of(value) == kind and order_of(value) <= wanted


def at_least(operand: Any) -> Test:
    """Return whether a value is greater or equal; what is missing is equal to null."""
    if operand is None:
        return equal_to(None)
    if _is_number(operand):
        return lambda value: type(value) in _PLAIN and value >= operand
    wanted, kind = order_of(operand), kind_of(operand)
    return lambda value: kind_of(value) == kind and order_of(value) >= wanted


COMPARISONS: dict[str, Callable[[Any], Test]] = {
    "$eq": equal_to,
    "$gt": greater,
    "$gte": at_least,
    "$lt": less,
    "$lte": at_most,
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


def _is_number(operand: Any) -> bool:
    return type(operand) in _PLAIN and operand == operand  # noqa: PLR0124
