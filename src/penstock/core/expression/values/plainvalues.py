"""Field values as plain data: what pane state is made of, and what aggregates compute with.

Numbers, texts and bytes are themselves. An instant is its microseconds since 1970, a date its days,
a decimal a whole number of 10^-18. A number that is not finite is no value: null.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from math import isfinite
from typing import Any, Literal

from penstock.core.expression.values.times import days_of, from_days, from_micros
from penstock.core.instants import micros
from penstock.core.records.annotations import HINTS
from penstock.core.records.schema import Choice, FieldType, ListOf, Scalar

__all__ = ["DECIMAL_SCALE", "annotation_of", "from_plain", "to_plain"]

DECIMAL_SCALE = 18
_MAX_DIGITS = 38
_EXACT = Context(prec=_MAX_DIGITS + DECIMAL_SCALE)
_INT64 = 2**63


def to_plain(kind: FieldType) -> Callable[[Any], Any]:
    """Return what makes a value of a type plain; null stays null."""
    if isinstance(kind, Scalar) and kind.name in _TO_PLAIN:
        return _nullable(_TO_PLAIN[kind.name])
    return _same


def from_plain(kind: FieldType) -> Callable[[Any], Any]:
    """Return what makes a plain value one that a record holds; what no record can hold is null."""
    if isinstance(kind, ListOf):
        inner = from_plain(kind.item)
        return lambda values: [inner(value) for value in values]
    if isinstance(kind, Scalar) and kind.name in _FROM_PLAIN:
        return _nullable(_FROM_PLAIN[kind.name])
    return _same


def annotation_of(kind: FieldType) -> Any:
    """Return the Python type that a record class declares for a field of scalars or lists."""
    match kind:
        case Scalar(name):
            return HINTS[name]
        case Choice(values):
            return Literal[values]
        case ListOf(item):
            return list[annotation_of(item)]  # type: ignore[misc]
    raise TypeError(f"no annotation for {kind}")


def _same(value: Any) -> Any:
    return value


def _nullable(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _float(value: float) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def _int(value: int) -> int | None:
    return value if -_INT64 <= value < _INT64 else None


def _scaled(value: Decimal) -> int:
    return int(value.scaleb(DECIMAL_SCALE, _EXACT))


def _decimal(value: int) -> Decimal | None:
    if abs(value) >= 10**_MAX_DIGITS:
        return None
    return Decimal(value).scaleb(-DECIMAL_SCALE, _EXACT)


_TO_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": _float,
    "instant": micros,
    "date": days_of,
    "decimal": _scaled,
}
_FROM_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": _float,
    "int": _int,
    "instant": from_micros,
    "date": from_days,
    "decimal": _decimal,
}
