"""What expressions give: the answers Spark 4 gives, and null where it would fail."""

import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import msgspec
import pytest

from penstock import record
from penstock.core.expression import compile_predicate, compile_row, parse
from penstock.core.expression.emit import Emitter
from penstock.core.records.record import record_type
from penstock.core.records.schema import Schema
from penstock.errors import DataError, DefinitionError

INDIA = timezone(timedelta(hours=5, minutes=30))


@record()
class Position:
    north: float
    east: float | None = None


@record()
class Row:
    tags: list[str]
    levels: dict[str, int]
    text: str = "Water"
    number: int = 7
    largest: int = 2**63 - 1
    least: int = -(2**63)
    celsius: float = 31.5
    nan: float = math.nan
    infinite: float = math.inf
    price: Decimal = Decimal("12.50")
    at: datetime = datetime(2026, 1, 31, 12, 30, 15, 250_000, tzinfo=INDIA)
    day: date = date(2024, 2, 29)
    true: bool = True
    none: int | None = None
    unknown: bool | None = None
    nothing: float | None = None
    position: Position = Position(north=1.5)
    lost: Position | None = None


def schema() -> Schema:
    found = record_type(Row)
    assert found is not None
    return found.schema


def row(**given: object) -> Row:
    return Row(tags=["a", "b"], levels={"low": 1}, **given)


def value(text: str, **given: object) -> object:
    return compile_row(parse(text, schema()))(row(**given))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("celsius > 30 and text <> 'x'", True),
        ("celsius * 1.8 + 32", 31.5 * 1.8 + 32),
        # overflow, division by zero and bad texts are null
        ("largest + 1", None),
        ("least - 1", None),
        ("-least", None),
        ("abs(least)", None),
        ("largest * 2", None),
        ("least div -1", None),
        ("2147483647 + 1", None),
        ("cast(largest as int)", None),
        ("number / 0", None),
        ("number % 0", None),
        ("celsius / 0", None),
        ("cast('water' as int)", None),
        ("coalesce(number / 0, 5)", 5.0),
        # whole numbers
        ("number / 2", 3.5),
        ("number div 2", 3),
        ("-7 div 2", -3),
        ("-7 % 3", -1),
        ("pmod(-7, 3)", 2),
        ("mod(7, -3)", 1),
        ("round(25, -1)", 30),
        # doubles: NaN is equal to itself and above everything, -0.0 is 0.0
        ("nan = nan", True),
        ("nan > infinite", True),
        ("celsius < nan", True),
        ("nan > 1", True),
        ("nan <= 1", False),
        ("1 < nan", True),
        ("nan in (1D, 2D)", False),
        ("nan <> 1", True),
        ("-0.0D = 0.0D", True),
        ("greatest(celsius, nan) = nan", True),
        ("least(celsius, nan)", 31.5),
        ("nanvl(nan, 1)", 1.0),
        ("isnan(nothing)", False),
        ("nan between 1 and 2", False),
        ("round(2.5D)", 3.0),
        ("round(-2.5D)", -3.0),
        ("round(1.005D, 2)", 1.01),
        ("ceil(-0.5D)", 0),
        ("ceil(nan)", 0),
        ("floor(infinite)", 2**63 - 1),
        ("cast(2147483647.9D as int)", 2**31 - 1),
        ("cast(nan as bigint)", None),
        ("ln(0)", None),
        ("exp(1)", 2.7182818284590455),
        ("power(2, 10)", 1024.0),
        ("sign(-3)", -1.0),
        # decimals
        ("price * price", Decimal("156.25")),
        ("price / 3", Decimal("4.166666666666666667")),
        ("1.5 + 2.25", Decimal("3.75")),
        ("number > 6.5", True),
        ("round(price, 1)", Decimal("12.5")),
        ("ceil(price)", Decimal(13)),
        ("cast(price as string)", "12.500000000000000000"),
        ("cast(1.5 as int)", 1),
        ("cast(celsius as decimal(5,1))", Decimal("31.5")),
        # texts
        ("lower(text) || '!'", "water!"),
        ("substring(text, 2, 3)", "ate"),
        ("substring(text, -2)", "er"),
        ("replace(text, '', 'x')", "Water"),
        ("split_part('a.b.c', '.', -1)", "c"),
        ("split_part('a.b.c', '.', 9)", ""),
        ("length('a😀')", 2),
        ("upper('straße')", "STRASSE"),
        ("trim('  a\t ')", "a\t"),
        ("text like 'W_t%'", True),
        (r"'50%' like '50\\%'", True),
        ("'a%b' like 'a!%b' escape '!'", True),
        ("text rlike '^[A-Z][a-z]+$'", True),
        ("'\\uffff' < '\\U00010000'", True),
        ("instr(text, 't')", 3),
        # null
        ("none = none", None),
        ("none <=> none", True),
        ("none is null and none is not null", False),
        ("unknown and false", False),
        ("unknown or true", True),
        ("unknown and true", None),
        ("not unknown", None),
        ("none in (1, 2)", None),
        ("number in (1, null)", None),
        ("number in (7, null)", True),
        ("number between none and 5", False),
        ("number between none and 9", None),
        ("nullif(number, 7)", None),
        ("concat(text, null)", None),
        ("greatest(none, number)", 7),
        ("case when unknown then 1 else 2 end", 2),
        ("case number when 7 then 'seven' end", "seven"),
        ("if(none > 1, 'a', 'b')", "b"),
        ("nvl2(none, 1, 2)", 2),
        ("unknown is not true", True),
        # lists, maps, records
        ("tags[0]", "a"),
        ("tags[5]", None),
        ("tags[-1]", None),
        ("element_at(tags, -1)", "b"),
        ("element_at(tags, 0)", None),
        ("levels['low'] + 1", 2),
        ("levels['high']", None),
        ("size(tags) + size(levels)", 3),
        ("array_contains(tags, 'b')", True),
        ("position.north", 1.5),
        ("position.east", None),
        ("lost.north", None),
        ("lost is null", True),
        # time, in UTC
        ("hour(at)", 7),
        ("unix_millis(at)", 1_769_842_815_250),
        ("date_trunc('hour', at)", datetime(2026, 1, 31, 7, tzinfo=UTC)),
        ("date_trunc('week', at)", datetime(2026, 1, 26, tzinfo=UTC)),
        ("at = timestamp '2026-01-31 07:00:15.25'", True),
        ("at > date '2026-01-31'", True),
        ("at + interval 45 seconds", datetime(2026, 1, 31, 7, 1, 0, 250_000, tzinfo=UTC)),
        ("timestamp_seconds(999999999999)", None),
        ("cast(at as string)", "2026-01-31 07:00:15.25"),
        ("cast(at as date)", date(2026, 1, 31)),
        ("day + 1", date(2024, 3, 1)),
        ("day + 2147483647", None),
        ("dayofweek(day)", 5),
        ("dayofyear(day)", 60),
        ("weekofyear(date '2024-12-30')", 1),
        ("datediff(at, day)", 702),
        ("cast('2026-1-5 noon' as date)", date(2026, 1, 5)),
        ("cast(' 42 ' as bigint)", 42),
        ("cast('1e3' as double)", 1000.0),
        ("cast('Yes' as boolean)", True),
    ],
)
def test_an_expression_gives_what_spark_gives(text: str, expected: object):
    found = value(text)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "celsius > 30",
        "nothing > 30",
        "not nothing > 30",
        "not (unknown or number = 7)",
        "unknown and not unknown",
        "nothing between 1 and 2 or text like 'W%'",
        "not (nothing in (1, 2) or text = 'x')",
        "coalesce(unknown, true)",
        "case when unknown then true end",
        "cast('yes' as boolean) or unknown",
        "not contains(text, 'a')",
        "null",
    ],
)
def test_a_predicate_is_true_where_the_value_is_and_false_for_null(text: str):
    expression = parse(text, schema())

    assert compile_predicate(expression)(row()) is (compile_row(expression)(row()) is True)


def test_a_predicate_is_a_condition():
    with pytest.raises(DefinitionError, match="not a condition"):
        compile_predicate(parse("number + 1", schema()))


def test_fields_of_records_inside_are_reached_into():
    expression = parse("position.north + coalesce(lost.east, number)", schema())

    assert compile_row(expression)(row()) == 8.5


def test_a_record_that_breaks_its_schema_is_a_data_error():
    with pytest.raises(DataError, match=r"'celsius > 30'.*\[expression.record\]"):
        value("celsius > 30", celsius="hot")


def test_an_instant_without_a_zone_is_a_data_error():
    with pytest.raises(DataError, match=r"expression\.record"):
        value("at > timestamp '2026-01-01'", at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_fields_that_are_never_null_cost_no_check():
    source = Emitter().body(parse("celsius > 30 and text <> 'x'", schema()).root, predicate=True)

    assert source == "return ((not r.celsius <= 30.0) and (r.text != 'x'))"


def test_a_name_that_is_a_word_of_python_is_read_all_the_same():
    fields = [{"name": "class", "type": "int"}, {"name": "größe", "type": "int"}]
    words = Schema.from_json({"name": "Words", "fields": fields, "key": [], "time": None})
    values = msgspec.defstruct("Values", [("class", int), ("größe", int)])(1, 2)

    assert compile_row(parse("class + größe", words))(values) == 3


def test_names_and_texts_that_look_like_variables_of_the_source_do_no_harm():
    names = ["r", "f1", "f0", "t1", "k0"]
    fields = [{"name": name, "type": "text"} for name in names]
    words = Schema.from_json({"name": "Words", "fields": fields, "key": [], "time": None})
    values = msgspec.defstruct("Values", [(name, str) for name in names])(*names)

    assert (
        compile_row(parse("f1 || r || 'f0' || f0 || t1 || 't1' || k0", words))(values)
        == "f1rf0f0t1t1k0"
    )
    assert compile_row(parse("r = 'f0' or f1 <> 'r.f0'", words))(values) is True


def test_the_deepest_expression_compiles():
    nested = "if(none > 1, 0, " * 38 + "number" + ")" * 38
    summed = "number" + " - (none + 1" * 38 + ")" * 38
    chained = " + ".join(["celsius * 2"] * 90)

    assert value(nested) == 7
    assert value(summed) is None
    assert value(chained) == 63.0 * 90


def test_an_expression_travels_to_another_process():
    expression = parse("celsius > 30", schema())

    assert pickle.loads(pickle.dumps(expression)) == expression  # noqa: S301
