"""Patterns mean in Python what they mean in Java, or are refused."""

import re

import pytest

from penstock.core.expression.pattern import (
    PatternError,
    like_to_regex,
    normal_like,
    regex_to_python,
)


def finds(pattern: str, text: str) -> bool:
    return re.search(regex_to_python(pattern), text, re.ASCII) is not None


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
    assert finds(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("(a+)+", 4),
        ("(a|b)*", 5),
        ("(a{2}){2}", 6),
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
        ("a{1000}", 1),
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
        regex_to_python(pattern)

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
    ],
)
def test_like_matches_the_whole_text(pattern: str, escape: str, text: str, found: object):
    regex = like_to_regex(normal_like(pattern, escape))

    assert (re.fullmatch(regex, text) is not None) is found


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\a%"])
def test_an_escape_before_anything_else_is_refused(pattern: str):
    with pytest.raises(PatternError):
        normal_like(pattern)
