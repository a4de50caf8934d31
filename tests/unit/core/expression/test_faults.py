"""What is refused, where in the text, and with which advice."""

from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import record
from penstock.core.expression import Expression, Fault, compile_row, examine, parse
from penstock.core.records.record import record_type
from penstock.core.records.schema import Scalar, Schema
from penstock.errors import DefinitionError, Place


@record()
class Position:
    north: float


@record()
class Reading:
    device: str
    at: datetime
    celsius: float
    count: int
    price: Decimal
    tags: list[str]
    labels: dict[str, str]
    position: Position


def schema() -> Schema:
    found = record_type(Reading)
    assert found is not None
    return found.schema


def faults(text: str) -> tuple[Fault, ...]:
    found = examine(text, schema())
    assert not isinstance(found, Expression), f"{text} was accepted"
    return found


def test_a_fault_points_at_its_place_with_carets():
    (fault,) = faults("count > 1 and\n  devcie = 'x'")

    assert (fault.start, fault.end) == (16, 22)
    assert fault.pointer("count > 1 and\n  devcie = 'x'") == "  devcie = 'x'\n  ^^^^^^"
    assert fault.hint == "did you mean 'device'?"


def test_all_faults_are_found_at_once_each_with_its_place():
    found = faults("clesius > 30 and devise = 'x' and foo(count) and celsius like 'a%'")

    assert [(fault.code, fault.start) for fault in found] == [
        ("expression.unknown-field", 0),
        ("expression.unknown-field", 17),
        ("expression.unknown-function", 34),
        ("expression.type", 49),
    ]


def test_parse_raises_one_error_with_every_problem():
    with pytest.raises(DefinitionError) as caught:
        parse("clesius > 30 and foo(count)", schema())

    assert [problem.code for problem in caught.value.problems] == [
        "expression.unknown-field",
        "expression.unknown-function",
    ]
    assert "clesius > 30 and foo(count)\n      ^^^^^^^" in str(caught.value)


def test_a_problem_can_name_the_file_and_line_of_its_definition():
    (fault,) = faults("clesius > 30")

    assert str(fault.problem("clesius > 30", Place("app.py", 7))).startswith(
        "app.py:7: Reading has"
    )


@pytest.mark.parametrize(
    ("text", "code", "start"),
    [
        ("reflect('java.lang.Runtime', 'getRuntime')", "unknown-function", 0),
        ("count + java_method('java.util.UUID', 'randomUUID')", "unknown-function", 8),
        ("try_reflect('a', 'b')", "unknown-function", 0),
        ("input_file_name()", "unknown-function", 0),
        ("current_user()", "unknown-function", 0),
        ("now() > at", "unknown-function", 0),
        ("(select 1)", "syntax", 1),
        ("exists(select 1)", "syntax", 0),
        ("count in (select 1)", "syntax", 10),
        ("transform(tags, tag -> tag)", "syntax", 21),
        ("device = ${spark.app.name}", "character", 9),
        ("count > :limit", "character", 8),
        ("count > ?", "character", 8),
        ("count /*+ BROADCAST(a) */ > 1", "character", 6),
        ("count > 1 -- and more", "character", 10),
        ("count > 1; drop table a", "character", 9),
        ('device = "x"', "character", 9),
        ("system.builtin.length(device)", "syntax", 21),
        ("count(*)", "syntax", 6),
        ("sum(count)", "unknown-function", 0),
        ("count::string", "character", 5),
        ("device 'x'", "syntax", 7),
        ("(count, device)", "syntax", 6),
        ("@variable", "character", 0),
        ("count & 1", "character", 6),
        ("IDENTIFIER('count')", "unknown-function", 0),
        ("device = 'open", "unclosed", 9),
        ("", "syntax", 0),
        ("count >", "syntax", 7),
        ("count is", "syntax", 8),
        ("count is 5", "syntax", 9),
        ("+count", "syntax", 0),
        ("5S", "literal", 0),
        ("1e999", "literal", 0),
        ("99999999999999999999999", "literal", 0),
        ("date '2026-02-30'", "literal", 5),
        ("1" * 5_000, "literal", 0),
        ("1e99999999999999999999BD", "literal", 0),
        ("at + interval 99999999999999 weeks", "syntax", 14),
        ("cast(count as decimal(" + "1" * 5_000 + "))", "syntax", 22),
        ("cast(count as tinyint)", "literal", 14),
        ("at + interval 1 month", "syntax", 16),
        (r"device = '\ud83d'", "character", 9),
    ],
)
def test_what_is_outside_the_language_is_refused_at_its_place(text: str, code: str, start: int):
    (fault,) = faults(text)

    assert (fault.code, fault.start) == (f"expression.{code}", start)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("celsius > 'hot'", "cast one of them, as in cast(... as double)"),
        (
            "at > '2026-01-31'",
            "write a constant as timestamp '2026-01-31 12:30:00' or date '2026-01-31'",
        ),
        ("at - at > 5", "subtract their unix_millis()"),
        (
            "cast(celsius as string)",
            "Java's releases print doubles differently; cast to decimal(14,2) first",
        ),
        ("cast(device as decimal(10,2))", "cast to double or bigint first"),
        ("cast(celsius as decimal(20,2))", "cast to decimal(14, ...)"),
        ("celsius and count > 1", "compare it, as in ... <> 0"),
        ("device || count", "cast it: cast(... as string)"),
        ("labels.colour = 'x'", "write ['colour']"),
        ("tags.colour = 'x'", "take one item: [0].colour"),
        ("position.nort > 1", "did you mean 'north'?"),
        ("lenght(device)", "did you mean 'length'?"),
        ("celsius = None", "what is missing is null: x is null, x is not null"),
        ("celsius div 2", "use /"),
        ("max(count)", "aggregates are not part of expressions; greatest() compares fields"),
        ("end > 1", "a field of this name stands in backticks"),
    ],
)
def test_a_fault_says_what_to_write_instead(text: str, hint: str):
    assert faults(text)[0].hint == hint


def test_a_condition_is_expected_where_a_condition_is_needed():
    found = examine("count + 1", schema(), expect=Scalar("bool"))

    assert not isinstance(found, Expression)
    assert found[0].message == "the expression gives bigint, and bool is needed"


def test_a_number_is_widened_to_the_field_it_is_for():
    assert str(parse("length(device)", schema(), expect=Scalar("int")).type) == "bigint"
    assert str(parse("count", schema(), expect=Scalar("float")).type) == "double"
    assert str(parse("price * 2", schema(), expect=Scalar("decimal")).type) == "decimal(38,18)"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100 + "count" + ")" * 100,
        "-" + " -" * 100 + "count",
        "not " * 4_000 + "true",
        "!" * 10_000 + "true",
        "tags" + "[0]" * 5_000,
        "position" + ".north" * 3_000,
        "case when true then " * 900 + "1",
        "x" * 30_000,
        " + ".join(["count"] * 150),
        "(count" * 30 + (" - count" * 20 + ")") * 30,
        "count in (" + ", ".join(map(str, range(3_000))) + ")",
        "case " * 30 + "count" + " when 1 then 2 when 3 then 4 when 5 then 6 end" * 30,
    ],
)
def test_an_expression_past_its_limits_is_refused_not_run_out_of_memory(text: str):
    assert faults(text)[0].code in ("expression.too-large", "expression.syntax")


WORDS = [
    *(
        "count",
        "celsius",
        "device",
        "at",
        "price",
        "tags",
        "labels",
        "position",
        ".north",
        "null",
        "true",
    ),
    *("1", "2L", "1.5", "1e3", "'x'", "'%a_'", "r'[a]'", "date '2026-01-31'", "interval 5 minutes"),
    *("+", "-", "*", "/", "%", "div", "||", "=", "<>", "<=>", "<", ">=", "and", "or", "not", "!"),
    *(
        "is",
        "in",
        "between",
        "like",
        "rlike",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "as",
        "int",
    ),
    *(
        "(",
        ")",
        "(",
        ")",
        "[",
        "]",
        ",",
        "length(",
        "coalesce(",
        "if(",
        "round(",
        "date_trunc(",
        "nullif(",
    ),
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)))
@settings(max_examples=6 * settings().max_examples)
def test_any_text_is_an_expression_or_has_faults_within_it(text: str):
    found = examine(text, schema())

    if isinstance(found, Expression):
        compile_row(found)
    else:
        assert found
        assert all(0 <= fault.start <= len(text) for fault in found)
        assert all(fault.problem(text).message for fault in found)


def test_an_expression_within_its_limits_is_taken():
    examples = [
        "(" * 38 + "count" + ")" * 38,
        " + ".join(["count"] * 100),
        " or ".join(["count = 1"] * 500),
        "count in (" + ", ".join(map(str, range(1_000))) + ")",
    ]

    assert all(isinstance(examine(text, schema()), Expression) for text in examples)
