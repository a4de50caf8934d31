"""The tokens of a query's text, and the names of tables in it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipelines.query.tokens import Named, deepest, name_at, tokens


def words(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b1\t_c", ["a", ",", "b1", "_c"]),
        ("'it''s' \"a\"\"b\" 'a\\'b'", ["'it''s'", '"a""b"', "'a\\'b'"]),
        ("r'\\' x", ["r'\\'", "x"]),
        ("`a``b` `c", ["`a``b`", "`", "c"]),
        ("a -- 'b\n c", ["a", "c"]),
        ("a /* b /* c */ ' */ d", ["a", "d"]),
        ("a /* b", ["a"]),
        ("'a", ["'", "a"]),
    ],
)
def test_a_text_is_cut_as_spark_cuts_it(text, expected):
    assert words(text) == expected


def test_brackets_count_where_they_are_brackets():
    assert deepest(list(tokens("([{x}])"))) == 3
    assert deepest(list(tokens("'(((' /* ((( */ `(((` -- (((\n (x)"))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kept k", Named(("kept",), 0, 4, 4)),
        ("shop . /* . */ `or``ders` o", Named(("shop", "or`ders"), 0, 25, 25)),
        ("kept version as of 3 k", Named(("kept",), 0, 4, 20)),
        ("kept for Timestamp AS OF '2026' as k", Named(("kept",), 0, 4, 31)),
        ("kept version", Named(("kept",), 0, 4, 4)),
        ("kept version as of", Named(("kept",), 0, 4, 4)),
        ("'kept'", None),
        ("", None),
    ],
)
def test_a_name_is_found_with_its_parts_and_its_version(text, expected):
    assert name_at(list(tokens(text)), 0) == expected


@given(st.text(alphabet="'\"`\\/*-()[]. \nar1é", max_size=60))
def test_tokens_are_pieces_of_the_text_in_its_order(text):
    found = list(tokens(text))
    assert all(text[token.start : token.end] == token.text for token in found)
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
