"""Arithmetic as Spark does it: 32 and 64 bits, doubles, decimals; None where Spark would fail."""

import math
import re
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

__all__ = [
    "decimal_add",
    "decimal_ceiling",
    "decimal_divide",
    "decimal_fit",
    "decimal_floor",
    "decimal_multiply",
    "decimal_negate",
    "decimal_of_integer",
    "decimal_remainder",
    "decimal_round",
    "decimal_subtract",
    "decimal_text",
    "decimal_to_int",
    "double_ceiling",
    "double_equal",
    "double_floor",
    "double_less",
    "double_less_or_equal",
    "double_pmod",
    "double_remainder",
    "double_round",
    "double_to_decimal",
    "double_to_int",
    "greatest",
    "greatest_double",
    "integer_pmod",
    "integer_round",
    "least",
    "least_double",
    "nullif",
    "nullif_double",
    "quotient",
    "remainder",
    "sign",
    "text_to_boolean",
    "text_to_double",
    "text_to_int",
]

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1

_EXACT = Context(prec=160, rounding=ROUND_DOWN, Emax=999_999, Emin=-999_999)
_WIDE = Context(prec=800, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_PRODUCT = Context(prec=39, rounding=ROUND_DOWN, Emax=999_999, Emin=-999_999)
_UNITS = [Decimal(1).scaleb(-scale) for scale in range(40)]
_BOUNDS = [Decimal(1).scaleb(digits) for digits in range(40)]
_TRIMMED = "".join(map(chr, [*range(0x21), 0x7F]))
"""What Spark strips from a text before it reads a number in it."""
_JAVA_TRIMMED = _TRIMMED[:-1]
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:NaN|Infinity|(?P<plain>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_DOUBLE_WORDS = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_BOOLEAN_WORDS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)


def quotient(dividend: int, divisor: int) -> int | None:
    """Return the whole part of a division, cut towards zero."""
    if not divisor:
        return None
    found = abs(dividend) // abs(divisor)
    found = found if (dividend < 0) == (divisor < 0) else -found
    return found if found <= BIGINT_MAX else None


def remainder(dividend: int, divisor: int) -> int | None:
    """Return what a division leaves, with the dividend's sign."""
    if not divisor:
        return None
    found = abs(dividend) % abs(divisor)
    return -found if dividend < 0 else found


def integer_pmod(dividend: int, divisor: int, bits: int) -> int | None:
    """Return Spark's pmod; its inner sum wraps around, as a Java integer does."""
    found = remainder(dividend, divisor)
    if found is None or found >= 0:
        return found
    half = 1 << (bits - 1)
    return remainder((found + divisor + half) % (half << 1) - half, divisor)


def double_remainder(dividend: float, divisor: float) -> float | None:
    """Return what a division leaves, with the dividend's sign."""
    if not divisor:
        return None
    return math.nan if math.isinf(dividend) else math.fmod(dividend, divisor)


def double_pmod(dividend: float, divisor: float) -> float | None:
    """Return Spark's pmod of doubles."""
    found = double_remainder(dividend, divisor)
    if found is None or not found < 0:
        return found
    return double_remainder(found + divisor, divisor)


def double_less(left: float, right: float) -> bool:
    """Return whether left comes first; NaN comes last and is equal to itself."""
    return left < right or (right != right and left == left)  # noqa: PLR0124


def double_less_or_equal(left: float, right: float) -> bool:
    """Return whether left does not come after right."""
    return left <= right or right != right  # noqa: PLR0124


def double_equal(left: float, right: float) -> bool:
    """Return whether two doubles are the same number, or both none."""
    return left == right or (left != left and right != right)  # noqa: PLR0124


def greatest(*values: object) -> object:
    """Return the greatest of the values that are not null."""
    return max((value for value in values if value is not None), default=None)  # type: ignore[type-var]


def least(*values: object) -> object:
    """Return the least of the values that are not null."""
    return min((value for value in values if value is not None), default=None)  # type: ignore[type-var]


def greatest_double(*values: float | None) -> float | None:
    """Return the greatest of the doubles that are not null."""
    found: float | None = None
    for value in values:
        if value is not None and (found is None or double_less(found, value)):
            found = value
    return found


def least_double(*values: float | None) -> float | None:
    """Return the least of the doubles that are not null."""
    found: float | None = None
    for value in values:
        if value is not None and (found is None or double_less(value, found)):
            found = value
    return found


def nullif(value: object, other: object) -> object:
    """Return the value; None where it is the other."""
    return None if value == other else value


def nullif_double(value: float | None, other: float | None) -> float | None:
    """Return the double; None where it is the other."""
    if value is None or other is None:
        return value
    return None if double_equal(value, other) else value


def sign(value: float) -> float:
    """Return 1.0, -1.0, or the value itself where it is a zero or NaN."""
    return math.copysign(1.0, value) if value < 0 or value > 0 else value


def double_floor(value: float) -> int:
    """Return the greatest bigint that is not above, the nearest one where none is; NaN gives 0."""
    return _bigint(math.floor(value)) if math.isfinite(value) else _bigint_of_none(value)


def double_ceiling(value: float) -> int:
    """Return the least bigint that is not below, the nearest one where none is; NaN gives 0."""
    return _bigint(math.ceil(value)) if math.isfinite(value) else _bigint_of_none(value)


def _bigint(value: int) -> int:
    return min(max(value, BIGINT_MIN), BIGINT_MAX)


def _bigint_of_none(value: float) -> int:
    return BIGINT_MAX if value > 0 else BIGINT_MIN if value < 0 else 0


def double_to_int(value: float, low: int, high: int) -> int | None:
    """Return a double cut towards zero, where it fits between the bounds."""
    if not math.isfinite(value):
        return None
    # Spark compares with the bounds as doubles, so 2**63 passes and becomes the largest bigint.
    if math.floor(value) > float(high) or math.ceil(value) < float(low):
        return None
    return min(max(int(value), low), high)


def double_round(value: float, digits: int) -> float:
    """Return a double rounded half up, by its shortest decimal text."""
    if not math.isfinite(value):
        return value
    # A decimal has no negative zero.
    return float(_round(Decimal(repr(value)), digits)) + 0.0


def integer_round(value: int, digits: int, bits: int) -> int | None:
    """Return a whole number rounded half up at a digit before the point."""
    found = int(_round(Decimal(value), digits))
    return found if -(1 << (bits - 1)) <= found < 1 << (bits - 1) else None


def _round(value: Decimal, digits: int) -> Decimal:
    scale = int(value.as_tuple().exponent)
    if -digits <= scale:
        return value
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)


def decimal_fit(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the decimal with this many digits, rounded half up; None where it does not fit."""
    found = value.quantize(_UNITS[scale], ROUND_HALF_UP, _EXACT)
    if not found:
        return found.copy_abs()
    return found if found.copy_abs() < _BOUNDS[precision - scale] else None


def decimal_add(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the sum."""
    return decimal_fit(_EXACT.add(left, right), precision, scale)


def decimal_subtract(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the difference."""
    return decimal_fit(_EXACT.subtract(left, right), precision, scale)


def decimal_multiply(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the product, which Spark cuts to 39 digits before it rounds it."""
    return decimal_fit(_PRODUCT.multiply(left, right), precision, scale)


def decimal_divide(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the quotient, which Spark cuts to 39 digits behind the point before it rounds it."""
    if not right:
        return None
    found = _EXACT.divide(left, right).quantize(_UNITS[39], ROUND_DOWN, _EXACT)
    return decimal_fit(found, precision, scale)


def decimal_remainder(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return what a division leaves, with the dividend's sign."""
    if not right:
        return None
    return decimal_fit(_EXACT.remainder(left, right), precision, scale)


def decimal_of_integer(value: int, precision: int, scale: int) -> Decimal | None:
    """Return a whole number as a decimal."""
    return decimal_fit(Decimal(int(value)), precision, scale)


def decimal_to_int(value: Decimal, low: int, high: int) -> int | None:
    """Return a decimal cut towards zero, where it fits between the bounds."""
    found = int(value)
    return found if low <= found <= high else None


def decimal_negate(value: Decimal) -> Decimal:
    """Return the decimal with the other sign."""
    return value.copy_negate() if value else value.copy_abs()


def decimal_round(value: Decimal, digits: int, precision: int, scale: int) -> Decimal | None:
    """Return the decimal rounded half up at a digit behind or before the point."""
    return decimal_fit(_round(value, digits), precision, scale)


def decimal_floor(value: Decimal) -> Decimal:
    """Return the greatest whole number that is not above."""
    return _whole(value, ROUND_FLOOR)


def decimal_ceiling(value: Decimal) -> Decimal:
    """Return the least whole number that is not below."""
    return _whole(value, ROUND_CEILING)


def _whole(value: Decimal, rounding: str) -> Decimal:
    found = value.quantize(_UNITS[0], rounding, _EXACT)
    return found or found.copy_abs()


def decimal_text(value: Decimal, scale: int) -> str:
    """Return the decimal in full, with as many digits behind the point as its type has."""
    found = value.quantize(_UNITS[scale], ROUND_HALF_UP, _EXACT)
    return format(found or found.copy_abs(), "f")


def double_to_decimal(value: float, precision: int, scale: int) -> Decimal | None:
    """Return a double as a decimal, by its shortest decimal text."""
    if not math.isfinite(value):
        return None
    rounded = _round(Decimal(repr(value)), scale)
    if rounded.copy_abs() >= _BOUNDS[precision - scale]:
        return None
    return decimal_fit(rounded, precision, scale)


def text_to_int(text: str, low: int, high: int) -> int | None:
    """Return the whole number that a text holds."""
    stripped = text.strip(_TRIMMED)
    if not _INTEGER.fullmatch(stripped):
        return None
    digits = stripped.lstrip("+-0") or "0"
    if len(digits) > len(str(high)):
        return None
    found = -int(digits) if stripped[0] == "-" else int(digits)
    return found if low <= found <= high else None


def text_to_double(text: str) -> float | None:
    """Return the double that a text holds, in any form that Java reads."""
    stripped = text.strip(_JAVA_TRIMMED)
    match = _DOUBLE.fullmatch(stripped)
    if match is None:
        return _DOUBLE_WORDS.get(stripped.lower())
    if hexadecimal := match["hex"]:
        try:
            found = float.fromhex(hexadecimal)
        except OverflowError:
            found = math.inf
    else:
        found = float(match["plain"] or stripped.lstrip("+-"))
    return -found if stripped[0] == "-" else found


def text_to_boolean(text: str) -> bool | None:
    """Return the truth value that a text names."""
    return _BOOLEAN_WORDS.get(text.strip(_TRIMMED).lower())
