"""What a decoded record must meet besides its types, so that every engine can hold it.

The codec asks once for each record, wherever it is read, so a value that Arrow, Spark or the lake
has no room for is a dead letter on every engine:

- an instant lies in the years 1 to 9999 in UTC too, and is at most 18 hours from UTC, as in Java;
- a text holds a match of the pattern that its limits name;
- a decimal has at most 20 digits before the point and 18 behind it, zeros at its ends not counted,
  and is not written with an exponent beyond 1,000.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from operator import attrgetter
from typing import Any

from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.matching.matching import searcher
from penstock.core.records.schema import Field, FieldType, ListOf, MapOf, Nested, Scalar, Schema

__all__ = [
    "DECIMAL_DIGITS",
    "DECIMAL_SCALE",
    "MAX_EXPONENT",
    "Check",
    "exact_decimal",
    "record_check",
    "zones",
]

Check = Callable[[Any], str | None]
"""From a value to why it is not admitted; None where it is."""

DECIMAL_DIGITS, DECIMAL_SCALE = 38, 18
MAX_EXPONENT = 1000
"""How far a decimal's last written digit is from the point; only zeros are that far."""

_WHOLE_DIGITS = DECIMAL_DIGITS - DECIMAL_SCALE
_UNIT = Decimal(1).scaleb(-DECIMAL_SCALE)
_EXACT = Context(prec=DECIMAL_DIGITS)
_FAR = timedelta(hours=18)
_FIRST, _LAST = instant(FIRST_MICROS), instant(LAST_MICROS)


def exact_decimal(value: Decimal) -> Decimal:
    """Return an admitted decimal with exactly 18 digits behind the point."""
    return value.quantize(_UNIT, context=_EXACT)


def record_check(schema: Schema, *, instants: bool = True) -> Check | None:
    """Return what finds the reason why a record is not admitted; None where all are.

    Without ``instants`` these are left out: for records in which they are texts still.
    """
    checks = [
        (field.name, check)
        for field in schema.fields
        if (check := _field_check(field, instants=instants)) is not None
    ]
    if not checks:
        return None

    def check_record(record: Any) -> str | None:
        for name, check in checks:
            value = getattr(record, name)
            # Nearly every instant is in UTC; a call for each would be felt.
            if value is None or (value.__class__ is datetime and value.tzinfo is UTC):
                continue
            if reason := check(value):
                return f"{reason} - at `{name}`"
        return None

    return check_record


def zones(schema: Schema) -> tuple[Callable[[Any], Any], Any] | None:
    """Return what reads the zones of a record's instants, and what they are if all are in UTC.

    Such records need no other check, and a service asks this of each. None where records hold more
    that is to be checked, or may lack an instant.
    """
    checked = [field for field in schema.fields if _field_check(field, instants=True) is not None]
    if not checked or any(each.type != Scalar("instant") or each.nullable for each in checked):
        return None
    read = attrgetter(*(f"{field.name}.tzinfo" for field in checked))
    return read, UTC if len(checked) == 1 else (UTC,) * len(checked)


def _field_check(field: Field, *, instants: bool) -> Check | None:
    pattern = field.limits.pattern if field.limits else None
    if pattern is None:
        return _check(field.type, instants=instants)
    matches = searcher(pattern)
    reason = f"Expected `str` matching regex {pattern!r}"
    return lambda text: None if matches(text) else reason


def _check(kind: FieldType, *, instants: bool) -> Check | None:
    match kind:
        case Scalar("instant") if instants:
            return _instant
        case Scalar("decimal"):
            return _decimal
        case ListOf(item):
            inner = _check(item, instants=instants)
            return inner and _of_all(inner)
        case MapOf(value):
            inner = _check(value, instants=instants)
            return inner and _of_all_values(inner)
        case Nested(schema):
            return record_check(schema, instants=instants)
    return None


def _of_all(check: Check) -> Check:
    return lambda values: next(filter(None, map(check, values)), None)


def _of_all_values(check: Check) -> Check:
    return lambda entries: next(filter(None, map(check, entries.values())), None)


def _instant(value: datetime) -> str | None:
    offset = value.utcoffset()
    if offset is None or value.tzinfo is UTC:
        return None
    if not -_FAR <= offset <= _FAR:
        return "the instant is more than 18 hours from UTC"
    if _FIRST.year < value.year < _LAST.year or _FIRST <= value <= _LAST:
        return None
    return "the instant is not in the years 1 to 9999 of UTC"


def _decimal(value: Decimal) -> str | None:
    if not value.is_finite():
        return "the decimal is not finite"
    _, digits, exponent = value.as_tuple()
    lowest = int(exponent)
    if not -MAX_EXPONENT <= lowest <= MAX_EXPONENT:
        return f"the decimal has an exponent beyond {MAX_EXPONENT}"
    if not value:
        return None
    zeros = 0
    while lowest + zeros < -DECIMAL_SCALE and digits[-1 - zeros] == 0:
        zeros += 1
    if value.adjusted() >= _WHOLE_DIGITS or lowest + zeros < -DECIMAL_SCALE:
        return (
            f"the decimal needs more than {_WHOLE_DIGITS} digits before the point "
            f"or {DECIMAL_SCALE} behind it"
        )
    return None
