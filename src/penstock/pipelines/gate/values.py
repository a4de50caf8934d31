"""JSON values to the values of a record: whether they are good, and what they are in Spark.

The expressions never raise, so a bad value costs its record and nothing else. The rules are those
of ``core/records/codec``; a differential test compares the two.
"""

from collections.abc import Callable
from typing import NamedTuple

from penstock.core.instants import FIRST_MICROS, FIRST_MILLIS, LAST_MICROS, LAST_MILLIS
from penstock.core.records.admission import MAX_EXPONENT
from penstock.core.records.schema import Choice, FieldType, Limits, Scalar
from penstock.pipelines.spark.patterns import searched
from penstock.pipelines.spark.schema import DECIMAL
from penstock.pipelines.spark.sqltext import Sql, all_of, any_of, coalesce, literal, matches, when

__all__ = [
    "Reading",
    "event_time",
    "is_good_instant",
    "read_scalar",
    "within",
]

# \z, not $: that also matches before a line end, at which the casts do not stumble.
_INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})\z"
)
_LONG_FRACTION = r"(\.[0-9]{6})([0-9])[0-9]*"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z"
# Each part ends where the next begins, so a long text is gone through once.
_DECIMAL = r"^[+-]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?0*[0-9]{1,4}))?\z"


class Reading(NamedTuple):
    """The value at a place of a record, and whether it is valid."""

    ok: Sql
    value: Sql


def read_scalar(raw: Sql, kind: Scalar | Choice) -> Reading:
    """Read a JSON value that has the right JSON type (a text for all but numbers and bools)."""
    if isinstance(kind, Choice):
        values = ", ".join(literal(value) for value in kind.values)
        return Reading(f"{raw} in ({values})", raw)
    read = _SCALARS.get(kind.name)
    return read(raw) if read else Reading(f"{raw} is not null", raw)


def is_good_instant(value: Sql) -> Sql:
    """Return whether an instant is there and lies in the years 1 to 9999."""
    return f"unix_micros({value}) between {FIRST_MICROS} and {LAST_MICROS}"


def event_time(milliseconds: Sql) -> Reading:
    """Read an event time that is held as milliseconds since the epoch."""
    good = f"{milliseconds} between {FIRST_MILLIS} and {LAST_MILLIS}"
    return Reading(good, when(good, f"timestamp_millis({milliseconds})"))


def _instant(text: Sql) -> Reading:
    # The log has microseconds: digits beyond them are rounded as the codec rounds them, by the
    # first one alone.
    cut = f"regexp_replace(upper({text}), {literal(_LONG_FRACTION)}, '$1')"
    rounded = f"regexp_extract({text}, {literal(_LONG_FRACTION)}, 2) >= '5'"
    other = (
        f"try_cast({cut} as timestamp) + "
        f"{when(rounded, 'interval 1 microsecond', 'interval 0 microsecond')}"
    )
    value = coalesce(
        when(_is_plain_instant(text), f"try_cast({text} as timestamp)"),
        when(matches(text, _INSTANT), other),
    )
    return Reading(is_good_instant(value), value)


def _is_plain_instant(text: Sql) -> Sql:
    """Return whether a text that Spark can cast is one of the form ``2026-01-01T00:00:00.123Z``.

    That is how nearly everybody writes an instant, and a regular expression takes three times the
    time. Spark's cast takes parts of one or two digits, years of four to six, a blank or sign
    before and any zone behind. With ``-`` in the fifth place the year has four digits and nothing
    stands before it; with the point, or the second colon, in its place every part between has two.
    A digit before the ``Z`` leaves no zone but UTC: no name of a zone ends in that way.
    """
    raw = f"cast({text} as binary)"
    size = f"octet_length({text})"
    places = any_of(
        all_of(f"{size} between 22 and 27", f"substring({raw}, 20, 1) = x'2e'"),
        all_of(f"{size} = 20", f"substring({raw}, 17, 1) = x'3a'"),
    )
    return all_of(
        f"endswith({text}, 'Z')",
        f"substring({raw}, 5, 1) = x'2d'",
        places,
        f"substring({raw}, {size} - 1, 1) between x'30' and x'39'",
    )


def _date(text: Sql) -> Reading:
    value = f"try_cast({text} as date)"
    shape = matches(text, _DATE)
    common_era = f"not startswith({text}, '0000')"
    return Reading(all_of(shape, common_era, f"{value} is not null"), value)


def _bytes(text: Sql) -> Reading:
    return Reading(matches(text, _BASE64), f"try_to_binary({text}, 'base64')")


def _float(number: Sql) -> Reading:
    return Reading(f"abs({number}) < double('infinity')", number)


def _decimal(text: Sql) -> Reading:
    whole, part, exponent = (
        f"regexp_extract({text}, {literal(_DECIMAL)}, {group})" for group in (1, 2, 3)
    )
    digits = f"concat({whole}, {part})"
    kind = DECIMAL.simpleString()
    # Spark takes minutes for a number with an exponent of seven digits: it sees none of these. And
    # it goes by the exponent of a zero too.
    zero = when(f"ltrim('0', {digits}) = '' and {digits} != ''", f"cast(0 as {kind})")
    value = when(matches(text, _DECIMAL), coalesce(zero, f"try_cast({text} as {kind})"))
    written = f"length({part}) - coalesce(try_cast({exponent} as int), 0)"
    # Digits behind the point once the number is written without trailing zeros and exponent.
    scale = f"{written} - length({digits}) + length(rtrim('0', {digits}))"
    return Reading(
        all_of(
            f"{value} is not null",
            f"{written} between -{MAX_EXPONENT} and {MAX_EXPONENT}",
            f"ltrim('0', {digits}) = '' or {scale} <= {DECIMAL.scale}",
        ),
        value,
    )


_SCALARS: dict[str, Callable[[Sql], Reading]] = {
    "instant": _instant,
    "date": _date,
    "decimal": _decimal,
    "bytes": _bytes,
    "float": _float,
}


def within(value: Sql, kind: FieldType, limits: Limits | None) -> Sql:
    """Return what a value must meet besides being of its type.

    A length is the characters of a text, the bytes of bytes, the entries of a list or a map.
    """
    if limits is None:
        return "true"
    length = f"length({value})" if isinstance(kind, Scalar | Choice) else f"size({value})"
    conditions = {
        "ge": f"{value} >= {{}}",
        "gt": f"{value} > {{}}",
        "le": f"{value} <= {{}}",
        "lt": f"{value} < {{}}",
        "min_length": f"{length} >= {{}}",
        "max_length": f"{length} <= {{}}",
    }
    found = [
        condition.replace("{}", literal(bound))
        for name, condition in conditions.items()
        if (bound := getattr(limits, name)) is not None
    ]
    if limits.pattern is not None:
        found.append(searched(value, limits.pattern, written=literal(limits.pattern)))
    return all_of(*found)
