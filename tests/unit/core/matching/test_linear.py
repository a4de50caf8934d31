"""Patterns that RE2 matches: as expected, in linear time, and refused in words."""

import pytest

from penstock.core.matching.linear import LONGEST_PATTERN, linear_search


def test_a_match_is_found_anywhere_in_a_text():
    assert linear_search("b+c")("abbc")
    assert not linear_search("b+c")("abb")
    assert linear_search("^AB$", "i")("ab")
    assert linear_search("ü.")("für \ud800")


@pytest.mark.timeout(20)
def test_nested_repeats_take_time_that_grows_with_the_text():
    search = linear_search(r"^(\w+\s?)+$")
    assert not search("_" * 20_000 + "!")  # which would never end, went it back


@pytest.mark.parametrize("pattern", ["(a)\\1", "(?=a)", "[", "(" + "a" * 9_000])
def test_what_cannot_be_matched_so_is_refused_in_a_line(pattern):
    with pytest.raises(ValueError, match=r"missing|invalid") as refused:
        linear_search(pattern)
    assert len(str(refused.value)) < 300
    assert not str(refused.value).startswith("b'")


def test_a_pattern_has_a_largest_length():
    with pytest.raises(ValueError, match="10,000"):
        linear_search("a" * (LONGEST_PATTERN + 1))
