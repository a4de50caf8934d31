"""Numbers, dates and instants as they are written in an expression, and the names of types."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as DecimalValue

from penstock.core.expression import types
from penstock.core.expression.fault import Fault, FaultError
from penstock.core.expression.parsing.lexer import Token
from penstock.core.hints import did_you_mean

__all__ = ["INTERVAL_UNITS", "TYPES", "named_type", "read_moment", "read_number"]

MAX_FRACTION = 18
MAX_WHOLE = 20
"""The digits a decimal may have behind and before the point, as in the fields of records."""

MAX_NUMBER = 60
"""How many characters a number may have."""

MAX_OFFSET = timedelta(hours=18)
"""How far from UTC a zone may be, as in Java."""

INTERVAL_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_NUMBER = re.compile(
    r"(?P<whole>[0-9]*)(?P<point>\.?)(?P<fraction>[0-9]*)(?P<exponent>[eE][+-]?[0-9]+)?(?P<suffix>\w*)"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
TYPES: dict[str, types.Type] = {
    "boolean": types.BOOLEAN,
    "int": types.INT,
    "integer": types.INT,
    "bigint": types.BIGINT,
    "long": types.BIGINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
}
_DECIMALS = ("decimal", "dec", "numeric")
_DEFAULT_DIGITS = 10
_MINUTES_PER_HOUR = 60


def read_number(token: Token, *, negative: bool = False) -> tuple[object, types.Type]:
    """Return the value and type of a number, as Spark reads it."""
    if len(token.value) > MAX_NUMBER:
        raise _refused(token, f"a number has at most {MAX_NUMBER} characters")
    match = _NUMBER.fullmatch(token.value)
    parts = match.groupdict() if match else {}
    suffix = (parts.get("suffix") or "").upper()
    digits = token.value[: len(token.value) - len(suffix)]
    written = f"-{digits}" if negative else digits
    fractional = bool(parts.get("point") or parts.get("exponent"))
    if suffix == "BD" or (not suffix and fractional and not parts.get("exponent")):
        return _decimal(token, written)
    if suffix == "D" or (not suffix and parts.get("exponent")):
        return _double(token, written)
    if suffix not in ("", "L") or fractional:
        message = f"{token.value} is not a number of a type that expressions have"
        raise _refused(token, message, "write 5 (int), 5L (bigint), 5.0 (decimal) or 5D (double)")
    return _integer(token, int(written), long=suffix == "L")


def _integer(token: Token, value: int, *, long: bool) -> tuple[object, types.Type]:
    if not long and -(2**31) <= value < 2**31:
        return value, types.INT
    if -(2**63) <= value < 2**63:
        return value, types.BIGINT
    if long:
        raise _refused(token, f"{value} does not fit 64 bits")
    return _decimal(token, str(value))


def _double(token: Token, written: str) -> tuple[object, types.Type]:
    value = float(written)
    if value in (float("inf"), float("-inf")):
        raise _refused(token, f"{written} is larger than any double")
    return value, types.DOUBLE


def _decimal(token: Token, written: str) -> tuple[object, types.Type]:
    try:
        value = DecimalValue(written)
    except ArithmeticError as error:
        raise _refused(token, f"{written} is larger than any decimal") from error
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision - scale > MAX_WHOLE or scale > MAX_FRACTION:
        message = f"{written} has more than {MAX_WHOLE} digits before or {MAX_FRACTION} behind"
        raise _refused(token, f"{message} the point")
    return value, types.Decimal(precision, scale)


def read_moment(token: Token, *, kind: str) -> tuple[object, types.Type]:
    """Return the value of ``date '...'`` or ``timestamp '...'``; without a zone it is UTC."""
    try:
        if kind == "date" and (found := _DATE.fullmatch(token.value)):
            year, month, day = map(int, found.groups())
            return date(year, month, day), types.DATE
        if kind == "timestamp" and (found := _INSTANT.fullmatch(token.value)):
            *_, fraction, zone = found.groups()
            numbers = [int(number or 0) for number in found.groups()[:6]]
            micros = int((fraction or "").ljust(6, "0"))
            local = datetime(*numbers, micros, tzinfo=UTC)  # type: ignore[arg-type, misc]
            return local - _offset(zone), types.TIMESTAMP
    except (ValueError, OverflowError) as error:
        raise _refused(token, f"{token.value!r} is not a {kind}: {error}") from error
    form = "2026-01-31" if kind == "date" else "2026-01-31 12:30:00.5+01:00"
    raise _refused(token, f"{token.value!r} is not a {kind}", f"write {kind} '{form}'")


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    minutes = int(zone[4:])
    ahead = timedelta(hours=int(zone[1:3]), minutes=minutes)
    if ahead > MAX_OFFSET or minutes >= _MINUTES_PER_HOUR:
        raise ValueError(f"no zone is {zone} from UTC")
    return -ahead if zone[0] == "-" else ahead


def named_type(token: Token, arguments: tuple[int, ...]) -> types.Type:
    """Return the type of this name; FaultError for one that expressions do not have."""
    name = token.value.lower()
    if name in _DECIMALS:
        precision, scale = (*arguments, 0, 0)[:2] if arguments else (_DEFAULT_DIGITS, 0)
        if not 0 <= scale <= precision <= types.MAX_DIGITS or precision == 0:
            raise _refused(token, f"decimal({precision},{scale}) is not a type")
        return types.Decimal(precision, scale)
    if name not in TYPES or arguments:
        hint = did_you_mean(name, [*TYPES, "decimal"])
        raise _refused(token, f"{token.value} is not a type to cast to", hint)
    return TYPES[name]


def _refused(token: Token, message: str, hint: str = "") -> FaultError:
    return FaultError(Fault("expression.literal", message, token.start, token.end, hint))
