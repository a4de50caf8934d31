"""The table of operations: how Python and Spark carry out each kind of call in a tree.

An operation is strict where it has a Python template and is not ``lenient``: it is null where an
argument is, and the template sees values only. It ``fails`` where it may be null all the same:
overflow, division by zero, a text that is no number. Spark's side says the same with ``try_``
functions, which do not depend on whether the session is in ANSI mode.

Spark's optimizer merges some operations with others of their kind (``merges``) below them and so
changes the answer: it adds up the constants of a sum, and with them loses an overflow in between,
and it makes ``lower(s)`` of ``lower(upper(s))``. ``APART`` of a kind is a template that changes no
value and keeps the two apart.

Templates name arguments ``{0}``, ``{1}``, all of them ``{all}``, from the second on ``{rest}``, the
result's type ``{type}``, its precision and scale ``{p}`` and ``{s}``, the first argument's scale
``{s0}``, and in Python a variable of its own ``{t}``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.core.expression.values.numbers import BIGINT_MAX, BIGINT_MIN, INT_MAX, INT_MIN
from penstock.core.expression.values.times import TRUNCATIONS
from penstock.core.instants import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS

__all__ = ["APART", "OPERATIONS", "Operation"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Without a Python template the compiler has a form of its own for it."""

    spark: str
    python: str = ""
    fails: bool = False
    lenient: bool = False
    merges: str = ""


APART = {
    "sum": "try_subtract({0}, 0)",
    "product": "try_subtract({0}, 0)",
    "case": "concat({0}, '')",
}


def _fits(value: str, low: int, high: int) -> str:
    return f"({{t}} if {low} <= ({{t}} := {value}) <= {high} else None)"


def _within(value: str, low: int, high: int, *, bits: int) -> str:
    """Return SQL that is null outside the bounds and reads its value once.

    Adding what is missing from the upper bound to the largest integer overflows exactly past that
    bound, and an overflow is null; likewise below.
    """
    suffix = "L" if bits == 64 else ""  # noqa: PLR2004
    above = f"{(1 << (bits - 1)) - 1 - high}{suffix}"
    below = f"{low + (1 << (bits - 1))}{suffix}"
    not_below = APART["sum"].format(f"try_add(try_subtract({value}, {below}), {below})")
    return f"try_subtract(try_add({not_below}, {above}), {above})"


def _instant(micros: str) -> str:
    return f"timestamp_micros({_within(micros, FIRST_MICROS, LAST_MICROS, bits=64)})"


def _day(days: str) -> str:
    return f"date_from_unix_date({_within(days, FIRST_DAY, LAST_DAY, bits=32)})"


def _logic() -> Iterator[tuple[str, Operation]]:
    yield "and", Operation("({conjunction})")
    yield "or", Operation("({disjunction})")
    yield "not", Operation("(NOT {0})")
    yield "is_null", Operation("({0} IS NULL)")
    yield "is_not_null", Operation("({0} IS NOT NULL)")
    yield "same", Operation("({0} <=> {1})")
    for name, sign in _COMPARISONS.items():
        yield name, Operation(f"({{0}} {sign} {{1}})")
    yield "between", Operation("({0} BETWEEN {1} AND {2})")
    yield "in", Operation("({0} IN ({rest}))")
    yield "case", Operation("CASE {branches} END")
    yield "coalesce", Operation("coalesce({all})")
    yield "nullif", Operation("nullif({0}, {1})", "nullif({0}, {1})", fails=True, lenient=True)
    yield (
        "nullif.double",
        Operation("nullif({0}, {1})", "nullif_double({0}, {1})", fails=True, lenient=True),
    )
    yield "greatest", Operation("greatest({all})", "greatest({all})", lenient=True)
    yield "least", Operation("least({all})", "least({all})", lenient=True)
    yield "greatest.double", Operation("greatest({all})", "greatest_double({all})", lenient=True)
    yield "least.double", Operation("least({all})", "least_double({all})", lenient=True)


_COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "greater_or_equal": ">=",
}


def _arithmetic() -> Iterator[tuple[str, Operation]]:
    for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")):
        spark, python = f"try_{name}({{0}}, {{1}})", f"{{0}} {sign} {{1}}"
        merges = {"add": "sum", "multiply": "product"}.get(name, "")
        for kind, low, high in (("int", INT_MIN, INT_MAX), ("bigint", BIGINT_MIN, BIGINT_MAX)):
            fitting = _fits(python, low, high)
            yield f"{name}.{kind}", Operation(spark, fitting, fails=True, merges=merges)
        yield f"{name}.double", Operation(f"({{0}} {sign} {{1}})", f"({python})")
        exact = f"decimal_{name}({{0}}, {{1}}, {{p}}, {{s}})"
        yield f"{name}.decimal", Operation(spark, exact, fails=True)
    divide, modulo = "try_divide({0}, {1})", "try_mod({0}, {1})"
    yield "divide.double", Operation(divide, "({0} / {1} if {1} else None)", fails=True)
    yield "divide.constant", Operation(divide, "({0} / {1})")
    yield "divide.decimal", Operation(divide, "decimal_divide({0}, {1}, {p}, {s})", fails=True)
    whole = "TRY_CAST(try_divide(CAST({0} AS DECIMAL(19,0)), CAST({1} AS DECIMAL(19,0))) AS BIGINT)"
    yield "quotient", Operation(whole, "quotient({0}, {1})", fails=True)
    yield "quotient.constant", Operation("({0} div {1})", "quotient({0}, {1})")
    yield "remainder.double", Operation(modulo, "double_remainder({0}, {1})", fails=True)
    exact = "decimal_remainder({0}, {1}, {p}, {s})"
    yield "remainder.decimal", Operation(modulo, exact, fails=True)
    positive = "pmod({0}, nullif({1}, 0))"
    yield "pmod.double", Operation(positive, "double_pmod({0}, {1})", fails=True)
    for kind, bits in (("int", 32), ("bigint", 64)):
        yield f"remainder.{kind}", Operation(modulo, "remainder({0}, {1})", fails=True)
        yield f"pmod.{kind}", Operation(positive, f"integer_pmod({{0}}, {{1}}, {bits})", fails=True)


def _of_one_number() -> Iterator[tuple[str, Operation]]:
    for kind, bits, zero, one in (("int", 32, "0", "1"), ("bigint", 64, "0L", "1L")):
        low = -(1 << (bits - 1))
        negative, negated = f"try_subtract({zero}, {{0}})", f"(-{{0}} if {{0}} != {low} else None)"
        yield f"negate.{kind}", Operation(negative, negated, fails=True)
        positive = f"abs(try_add(try_subtract({{0}}, {one}), {one}))"
        python = f"(abs({{0}}) if {{0}} != {low} else None)"
        yield f"abs.{kind}", Operation(positive, python, fails=True)
        rounded = "TRY_CAST(round(CAST({0} AS DECIMAL(20,0)), {1}) AS {type})"
        python = f"integer_round({{0}}, {{1}}, {bits})"
        yield f"round.{kind}", Operation(rounded, python, fails=True)
    yield "negate.double", Operation("(- {0})", "(-{0})")
    yield "negate.decimal", Operation("(- {0})", "decimal_negate({0})")
    # Spark's own minus and abs round a decimal past 34 digits, and fail where that overflows.
    for name, how in (("whole", "try_multiply"), ("fraction", "try_divide")):
        negative = f"TRY_CAST({how}({{0}}, CAST(-1 AS DECIMAL(1,0))) AS {{type}})"
        yield f"negate.decimal.{name}", Operation(negative, "decimal_negate({0})")
    positive = "TRY_CAST(replace(TRY_CAST({0} AS STRING), '-', '') AS {type})"
    yield "abs.decimal.long", Operation(positive, "{0}.copy_abs()")
    yield "abs.double", Operation("abs({0})", "abs({0})")
    yield "abs.decimal", Operation("abs({0})", "{0}.copy_abs()")
    yield "round.double", Operation("round({0}, {1})", "double_round({0}, {1})")
    exact = "decimal_round({0}, {1}, {p}, {s})"
    yield "round.decimal", Operation("round({0}, {1})", exact, fails=True)
    for name, python in (("ceil", "ceiling"), ("floor", "floor")):
        yield f"{name}.double", Operation(f"{name}({{0}})", f"double_{python}({{0}})")
        yield f"{name}.decimal", Operation(f"{name}({{0}})", f"decimal_{python}({{0}})")
    yield "sqrt", Operation("sqrt({0})", "(sqrt({0}) if {0} >= 0 else nan)")
    yield "exp", Operation("exp({0})", "exp({0})")
    yield "power", Operation("power({0}, {1})", "power({0}, {1})")
    for name, python in (("ln", "log"), ("log10", "log10")):
        above_zero = f"({python}({{0}}) if not {{0}} <= 0 else None)"
        yield name, Operation(f"{name}({{0}})", above_zero, fails=True)
    yield "sign", Operation("sign({0})", "sign({0})")
    yield "isnan", Operation("isnan({0})", "({0} != {0})", lenient=True)
    yield "nanvl", Operation("nanvl({0}, {1})", "({1} if {0} != {0} else {0})", lenient=True)


def _texts() -> Iterator[tuple[str, Operation]]:
    yield "length", Operation("length({0})", "len({0})")
    yield "lower", Operation("lower({0})", "lower({0})", merges="case")
    yield "upper", Operation("upper({0})", "upper({0})", merges="case")
    yield "trim", Operation("trim({0})", "{0}.strip(' ')")
    yield "ltrim", Operation("ltrim({0})", "{0}.lstrip(' ')")
    yield "rtrim", Operation("rtrim({0})", "{0}.rstrip(' ')")
    yield "substring", Operation("substring({0}, {1}, {2})", "substring({0}, {1}, {2})")
    yield "concat", Operation("concat({all})", "({sum})")
    yield "contains", Operation("contains({0}, {1})", "({1} in {0})")
    yield "startswith", Operation("startswith({0}, {1})", "{0}.startswith({1})")
    yield "endswith", Operation("endswith({0}, {1})", "{0}.endswith({1})")
    yield "instr", Operation("instr({0}, {1})", "({0}.find({1}) + 1)")
    yield "replace", Operation("replace({0}, {1}, {2})", "replace({0}, {1}, {2})")
    yield "split_part", Operation("split_part({0}, {1}, {2})", "split_part({0}, {1}, {2})")
    yield "like", Operation("({0} LIKE {1})")
    yield "rlike", Operation("({0} RLIKE {1})")


def _collections() -> Iterator[tuple[str, Operation]]:
    yield (
        "get",
        Operation("get({0}, {1})", "({0}[{1}] if 0 <= {1} < len({0}) else None)", fails=True),
    )
    # Spark fails on the index 0, and with the least int reads memory that is not the array's.
    nth = "try_element_at({0}, nullif(try_add(try_subtract({1}, 1), 1), 0))"
    yield "element_at.array", Operation(nth, "element_at({0}, {1})", fails=True)
    yield "element_at.map", Operation("try_element_at({0}, {1})", "{0}.get({1})", fails=True)
    yield "size.array", Operation("array_size({0})", "len({0})")
    yield "size.map", Operation("array_size(map_keys({0}))", "len({0})")
    yield "array_contains", Operation("array_contains({0}, {1})", "({1} in {0})")
    holds = "any(map(double_equal, {0}, repeat({1})))"
    yield "array_contains.double", Operation("array_contains({0}, {1})", holds)


def _times() -> Iterator[tuple[str, Operation]]:
    for unit in TRUNCATIONS:
        sql = f"date_trunc('{unit}', {{0}})"
        yield f"date_trunc.{unit}", Operation(sql, f"truncate_{unit}(utc({{0}}))")
    for part in ("year", "month", "day"):
        yield part, Operation(f"{part}({{0}})", f"{{0}}.{part}")
    for part in ("hour", "minute", "second"):
        yield part, Operation(f"{part}({{0}})", f"utc({{0}}).{part}")
    yield "quarter", Operation("quarter({0})", "(({0}.month + 2) // 3)")
    yield "dayofweek", Operation("dayofweek({0})", "({0}.isoweekday() % 7 + 1)")
    yield "weekday", Operation("weekday({0})", "{0}.weekday()")
    yield "dayofyear", Operation("dayofyear({0})", "{0}.timetuple().tm_yday")
    yield "weekofyear", Operation("weekofyear({0})", "{0}.isocalendar()[1]")
    yield "datediff", Operation("datediff({0}, {1})", "({0}.toordinal() - {1}.toordinal())")
    for name, sign in (("add", "+"), ("subtract", "-")):
        days = f"try_{name}(unix_date({{0}}), {{1}})"
        python = f"from_days(days_of({{0}}) {sign} {{1}})"
        yield f"{name}.date", Operation(_day(days), python, fails=True, merges="sum")
        micros = f"try_{name}(unix_micros({{0}}), {{1}})"
        python = f"from_micros(micros({{0}}) {sign} {{1}})"
        yield f"{name}.timestamp", Operation(_instant(micros), python, fails=True)
    yield "unix_date", Operation("unix_date({0})", "days_of({0})")
    yield "date_from_unix_date", Operation(_day("{0}"), "from_days({0})", fails=True)
    for unit, size in (("micros", 1), ("millis", 1_000), ("seconds", 1_000_000)):
        yield f"unix_{unit}", Operation(f"unix_{unit}({{0}})", f"(micros({{0}}) // {size})")
        micros = f"try_multiply({{0}}, {size}L)"
        python = f"from_micros({{0}} * {size})"
        yield f"timestamp_{unit}", Operation(_instant(micros), python, fails=True, merges="product")


def _casts() -> Iterator[tuple[str, Operation]]:
    def cast(
        pair: str, python: str, *, fails: bool = False, spark: str = ""
    ) -> tuple[str, Operation]:
        return f"cast.{pair}", Operation(spark or "TRY_CAST({0} AS {type})", python, fails=fails)

    bounds = {"int": (INT_MIN, INT_MAX), "bigint": (BIGINT_MIN, BIGINT_MAX)}
    yield cast("boolean.double", "float({0})")
    yield cast("boolean.decimal", "decimal_of_integer({0}, {p}, {s})", fails=True)
    yield cast("boolean.string", "('true' if {0} else 'false')")
    yield cast("int.bigint", "{0}")
    yield cast("bigint.int", f"({{0}} if {INT_MIN} <= {{0}} <= {INT_MAX} else None)", fails=True)
    through_bigint = "TRY_CAST(TRY_CAST({0} AS BIGINT) AS {type})"
    for kind, (low, high) in bounds.items():
        yield cast(f"boolean.{kind}", "int({0})")
        yield cast(f"double.{kind}", f"double_to_int({{0}}, {low}, {high})", fails=True)
        found = f"decimal_to_int({{0}}, {low}, {high})"
        yield cast(f"decimal.{kind}", found, fails=True, spark=through_bigint)
        yield cast(f"string.{kind}", f"text_to_int({{0}}, {low}, {high})", fails=True)
        seconds = _fits("micros({0}) // 1000000", low, high)
        yield cast(f"timestamp.{kind}", seconds, fails=True)
        yield cast(f"{kind}.double", "float({0})")
        yield cast(f"{kind}.decimal", "decimal_of_integer({0}, {p}, {s})", fails=True)
        yield cast(f"{kind}.string", "str({0})")
        instant = _instant("try_multiply({0}, 1000000L)")
        found = "from_micros({0} * 1000000)"
        yield f"cast.{kind}.timestamp", Operation(instant, found, fails=True, merges="product")
    for kind in ("int", "bigint", "double", "decimal"):
        yield cast(f"{kind}.boolean", "({0} != 0)")
    yield cast("double.decimal", "double_to_decimal({0}, {p}, {s})", fails=True)
    yield cast("decimal.decimal", "decimal_fit({0}, {p}, {s})", fails=True)
    yield cast("decimal.double", "float({0})")
    yield cast("decimal.string", "decimal_text({0}, {s0})")
    yield cast("string.boolean", "text_to_boolean({0})", fails=True)
    yield cast("string.double", "text_to_double({0})", fails=True)
    day = _day("unix_date(TRY_CAST({0} AS DATE))")
    yield cast("string.date", "text_to_date({0})", fails=True, spark=day)
    yield cast("date.string", "date_text({0})")
    yield cast("date.timestamp", "instant_of({0})")
    yield cast("timestamp.string", "instant_text({0})")
    yield cast("timestamp.date", "date_of({0})")
    yield cast("timestamp.double", "(float(micros({0})) / 1e6)")


OPERATIONS: dict[str, Operation] = dict(
    [
        *_logic(),
        *_arithmetic(),
        *_of_one_number(),
        *_texts(),
        *_collections(),
        *_times(),
        *_casts(),
    ]
)
