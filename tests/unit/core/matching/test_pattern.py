"""Patterns mean one thing on every engine, or are refused, and take time in proportion to a text."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.matching.backtracking import runs_straight
from penstock.core.matching.matching import like_matcher, searcher
from penstock.core.matching.pattern import PatternError, normal_like


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a.c$", "abc", True),
        (".", "\r", False),
        (".", "\u2028", False),
        ("b$", "ab\r\n", True),
        ("b$", "ab\u0085", True),
        ("b\r$", "ab\r\n", False),
        ("b\n$", "ab\n", True),
        (r"\d", "٣", False),
        (r"^\w+$", "é", False),
        ("[a-c-]+", "-", True),
        (r"[\]^-]", "]", True),
        ("[^a]", "a", False),
        ("^(ab|c){2}$", "abc", True),
        ("a{2,3}?b", "aab", True),
        (r"\(\.\)", "(.)", True),
        ("😀?x", "x", True),
        (r"[\d.]+", "1.5", True),
        (r"a\tb", "a\tb", True),
    ],
)
def test_a_pattern_finds_what_java_finds(pattern: str, text: str, found: object):
    assert searcher(pattern)(text) is found


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("a$b", 1),
        ("(a$|b)c", 2),
        ("(" * 51 + "a" + ")" * 51, 50),
        ("(?i)a", 0),
        ("(?=a)", 0),
        ("(?<name>a)", 0),
        (r"(a)\1", 3),
        (r"\bword", 0),
        (r"\p{L}", 0),
        (r"\Qa\E", 0),
        ("a++", 2),
        ("a**", 2),
        ("*a", 0),
        ("a{", 1),
        ("a{5,2}", 1),
        ("a{1001}", 1),
        ("[a", 0),
        ("[]", 1),
        ("[a[b]]", 2),
        ("[a&&b]", 2),
        ("[z-a]", 3),
        ("(a", 1),
        ("a)", 1),
        ("()", 1),
        ("a" * 2_000, 1_000),
    ],
)
def test_what_the_languages_do_not_share_is_refused_at_its_place(pattern: str, offset: int):
    with pytest.raises(PatternError) as caught:
        searcher(pattern)

    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "found"),
    [
        ("a%", "\\", "a\nb", True),
        ("_", "\\", "😀", True),
        ("_", "\\", "e\u0301", False),
        ("a\\%", "\\", "a%", True),
        ("a\\%", "\\", "ab", False),
        ("a!_!!", "!", "a_!", True),
        ("a\\", "!", "a\\", True),
        ("a.c", "\\", "abc", False),
        ("", "\\", "", True),
        ("%a%a", "\\", "a", False),
        ("a%a", "\\", "aa", True),
        ("%ab%b_", "\\", "abbb", True),
        ("%%", "\\", "", True),
    ],
)
def test_like_matches_the_whole_text(pattern: str, escape: str, text: str, found: object):
    assert like_matcher(normal_like(pattern, escape))(text) is found


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\a%"])
def test_an_escape_before_anything_else_is_refused(pattern: str):
    with pytest.raises(PatternError):
        normal_like(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(a+)+$", "a" * 100_000 + "!"),
        (r"^(\w|-|_){1,64}$", "_" * 40 + "!"),
        (r"^([a-z]|[a-z0-9]){1,60}-$", "a" * 60),
        (r"^.*,.*,.*,.*x$", "," * 100_000),
        (r"[0-9]+$", "1" * 100_000 + "x"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        (r"(.*)*x", "y" * 100_000),
        ("^" + "(?:|)" * 60 + "x", "y"),
        ("^" + "".join(f"(?:{chr(at)}?|{chr(at + 1)}?)" for at in range(256, 376, 2)) + "x", "y"),
    ],
)
def test_patterns_with_many_ways_through_a_text_end_on_long_ones(pattern: str, text: str):
    assert searcher(pattern)(text) is False


@pytest.mark.parametrize("pattern", ["%,%,%,%x", "%a%a%a%a%b", "%error%timeout%", "%_,%_,%_x"])
def test_like_with_many_percent_signs_ends_on_long_texts(pattern: str):
    for text in ("," * 100_000, "a" * 100_000, "error" * 100_000):
        assert like_matcher(pattern)(text) is False


@pytest.mark.parametrize(
    ("pattern", "straight"),
    [
        ("error", True),
        ("^[a-z]+@[a-z]+[.]com$", True),
        ("^[a-z0-9_-]{1,64}$", True),
        ("^(GET|POST|PUT) /.*$", True),
        (r"[0-9]{4}-[0-9]{2}", True),
        ("^a.*b", True),
        ("a.*b", False),
        ("^.*,.*x", False),
        ("^(a|b)*$", False),
        ("^(a|a)(a|a)$", False),
        ("^a?a?a?b", False),
        ("^(?:a|)(?:b|)c", True),
        ("^(?:|)c", False),
        ("^(?:a?|b?)c", False),
        ("[a-z]{1,100}x", False),
        ("^a{300}b{300}", False),
    ],
)
def test_java_is_asked_only_for_patterns_with_one_way_through(pattern: str, straight: object):
    assert runs_straight(pattern) is straight


def written(draw: Any, depth: int = 3) -> str:
    one = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\W", "\n", "é"])
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind <= 1:
        return draw(one)
    inner = [written(draw, depth - 1) for _ in range(draw(st.integers(1, 3)))]
    if kind == 2:
        return "(" + "|".join(inner) + ")"
    if kind == 3:
        return "".join(inner)
    return f"(?:{inner[0]})" + draw(st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}?"]))


@st.composite
def patterns(draw: Any) -> str:
    ends = draw(st.sampled_from(["", "^"])), draw(st.sampled_from(["", "$"]))
    return ends[0] + "".join(written(draw) for _ in range(draw(st.integers(1, 3)))) + ends[1]


PYTHONS = {
    ".": "[^\n\r\x85\u2028\u2029]",
    "$": r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\x85\u2028\u2029]\Z)|\Z)",
}


@given(patterns(), st.text("ab1 _\n\ré\u2028", max_size=6))
def test_both_engines_find_what_pythons_own_finds(pattern: str, text: str):
    own = "".join(PYTHONS.get(each, each) for each in pattern)

    assert searcher(pattern)(text) is (re.search(own, text, re.ASCII) is not None)
