"""Patterns of plain characters: found without a regular expression, with the very answers of RE2."""

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.core.matching.linear import linear_search
from penstock.core.matching.plain import plain_search

PATTERNS = st.lists(
    st.sampled_from(["^", "$", ".*", ".*", ".", "a", "b", "ab", "ü", r"\.", r"\$", "*", "?", "\n"]),
    max_size=6,
).map("".join)
TEXTS = st.lists(st.sampled_from(["a", "b", "ü", "\n", ".", "$", "\ud800"]), max_size=8).map(
    "".join
)


@given(PATTERNS, TEXTS, st.sampled_from(["", "i", "m", "s", "ms", "ims"]))
@example("a.*b", "a\nb ab", "")
@example("^a.*b$", "ab\n", "")
@example("^ab.*ba$", "aba", "")
@example("a.*b", "a\ud800b", "s")
@example("^$", "\n", "m")
@example("", "", "")
def test_every_pattern_is_matched_as_re2_matches_it(pattern, text, flags):
    options = re2.Options()
    options.log_errors = False
    try:
        expected = re2.compile(f"(?{flags}:{pattern})" if flags else pattern, options)
    except re2.error:
        return
    found = expected.search(text.encode("utf-8", "surrogatepass")) is not None
    assert linear_search(pattern, flags)(text) is found


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("roof", ""),
        ("roof", "m"),
        ("^water", "s"),
        (r"c\+\+$", ""),
        ("^water.*roof$", ""),
        (".*roof.*", ""),
        ("plants.*roof", "s"),
    ],
)
def test_these_need_no_regular_expression_to_say_no(pattern, flags):
    def never(_):
        raise AssertionError("RE2 was asked")

    assert not plain_search(pattern, flags, never)("something else")


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [("roof", "i"), ("^water", "m"), ("roo+f", ""), ("a|b", ""), ("wat.r", ""), (r"\d", "")],
)
def test_what_says_more_is_left_to_re2(pattern, flags):
    asked = []
    assert plain_search(pattern, flags, asked.append)("roof") is None
    assert asked == ["roof"]
