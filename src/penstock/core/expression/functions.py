"""The functions an expression may call: names, argument types, and the operation each becomes.

What is not in this table is refused. None of it reads a clock, a file, a setting or a class, and
none can fail on a record.
"""

from dataclasses import dataclass

from penstock.core.expression.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Type,
)

__all__ = ["CASTS", "FUNCTIONS", "OPERATORS", "TAKES_INSTANTS", "Signature"]


@dataclass(frozen=True, slots=True)
class Signature:
    """The argument types of a function, its result and its operation.

    ``defaults`` stand for arguments left out at the end.
    """

    parameters: tuple[Type, ...]
    result: Type
    operation: str
    defaults: tuple[object, ...] = ()


def _one(operation: str, parameter: Type, result: Type) -> tuple[Signature, ...]:
    return (Signature((parameter,), result, operation),)


_LARGEST_LENGTH = 2**31 - 1
_TEST = (STRING, STRING)
_DATE_PARTS = (
    "year",
    "quarter",
    "month",
    "day",
    "dayofweek",
    "weekday",
    "dayofyear",
    "weekofyear",
)

FUNCTIONS: dict[str, tuple[Signature, ...]] = {
    "sqrt": _one("sqrt", DOUBLE, DOUBLE),
    "exp": _one("exp", DOUBLE, DOUBLE),
    "ln": _one("ln", DOUBLE, DOUBLE),
    "log10": _one("log10", DOUBLE, DOUBLE),
    "power": (Signature((DOUBLE, DOUBLE), DOUBLE, "power"),),
    "sign": _one("sign", DOUBLE, DOUBLE),
    "isnan": _one("isnan", DOUBLE, BOOLEAN),
    "nanvl": (Signature((DOUBLE, DOUBLE), DOUBLE, "nanvl"),),
    "length": (Signature((STRING,), INT, "length"), Signature((BINARY,), INT, "length")),
    "lower": _one("lower", STRING, STRING),
    "upper": _one("upper", STRING, STRING),
    "trim": _one("trim", STRING, STRING),
    "ltrim": _one("ltrim", STRING, STRING),
    "rtrim": _one("rtrim", STRING, STRING),
    "substring": (Signature((STRING, INT, INT), STRING, "substring", (_LARGEST_LENGTH,)),),
    "contains": (Signature(_TEST, BOOLEAN, "contains"),),
    "startswith": (Signature(_TEST, BOOLEAN, "startswith"),),
    "endswith": (Signature(_TEST, BOOLEAN, "endswith"),),
    "instr": (Signature(_TEST, INT, "instr"),),
    "replace": (Signature((STRING, STRING, STRING), STRING, "replace", ("",)),),
    "hour": _one("hour", TIMESTAMP, INT),
    "minute": _one("minute", TIMESTAMP, INT),
    "second": _one("second", TIMESTAMP, INT),
    "datediff": (Signature((DATE, DATE), INT, "datediff"),),
    "date_add": (Signature((DATE, INT), DATE, "add.date"),),
    "date_sub": (Signature((DATE, INT), DATE, "subtract.date"),),
    "unix_date": _one("unix_date", DATE, INT),
    "date_from_unix_date": _one("date_from_unix_date", INT, DATE),
    **{name: _one(name, DATE, INT) for name in _DATE_PARTS},
    **{f"unix_{unit}": _one(f"unix_{unit}", TIMESTAMP, BIGINT) for unit in ("micros", "millis")},
    "unix_seconds": _one("unix_seconds", TIMESTAMP, BIGINT),
    **{
        f"timestamp_{unit}": _one(f"timestamp_{unit}", BIGINT, TIMESTAMP)
        for unit in ("micros", "millis", "seconds")
    },
}
"""Functions with fixed types; a narrower number is widened, and a bigint narrowed to an int."""

_ALIASES = {
    "char_length": "length",
    "character_length": "length",
    "lcase": "lower",
    "ucase": "upper",
    "substr": "substring",
    "pow": "power",
    "signum": "sign",
    "dayofmonth": "day",
    "date_diff": "datediff",
}
TAKES_INSTANTS = frozenset({*_DATE_PARTS, "dayofmonth", "datediff", "date_diff"})
"""Functions of dates that take a timestamp for its day."""

FUNCTIONS |= {alias: FUNCTIONS[name] for alias, name in _ALIASES.items()}

OPERATORS = {
    "mod": "%",
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
    "isnull": "is null",
    "isnotnull": "is not null",
}
"""Functions that say the same as an operator."""

CASTS = ("boolean", "int", "bigint", "double", "string", "date", "timestamp")
"""Types whose names are functions that cast to them."""
