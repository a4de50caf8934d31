"""Patterns in filters: regular expressions that are matched in linear time (RE2).

A pattern comes from a client. RE2 goes through the text once whatever the pattern says; what it
cannot do so, references back and looks around, is refused when the query is made.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.core.live.refusal import refuse
from penstock.core.matching.linear import LONGEST_PATTERN, linear_search

__all__ = ["Pattern", "pattern_test", "read_pattern_value"]

_OPTIONS = frozenset("imsxu")
_SPACE_AND_COMMENTS = re.compile(
    # A class that is never closed takes the rest, so that nothing is looked at twice.
    r"(\\.|\[(?:\\.|[^\]\\])*+(?:\]|\\?$))|\s+|#[^\n]*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, and its options."""

    text: str
    options: str = ""


def read_pattern_value(value: Any) -> Pattern | None:
    """Return the pattern that a document in a filter stands for; None: it stands for itself."""
    if not isinstance(value, dict) or set(value) != {"$regularExpression"}:
        return None
    inner = value["$regularExpression"]
    if isinstance(inner, dict) and isinstance(inner.get("pattern"), str):
        return Pattern(inner["pattern"], str(inner.get("options", "")))
    return None


def pattern_test(pattern: Pattern, *, path: str) -> Callable[[Any], bool]:
    """Return whether a value is a text that holds a match; refuse what cannot be matched."""
    try:
        search = _search(pattern)
    except ValueError as error:
        hint = "write it without references back and looks around"
        raise refuse(str(error), operator="$regex", path=path, hint=hint) from error
    return lambda value: type(value) is str and search(value)


def _search(pattern: Pattern) -> Callable[[str], bool]:
    if unknown := set(pattern.options) - _OPTIONS:
        raise ValueError(f"there is no option {min(unknown)!r}; there are i, m, s and x")
    text = pattern.text
    if len(text) <= LONGEST_PATTERN and "x" in pattern.options:
        text = _SPACE_AND_COMMENTS.sub(lambda found: found[1] or "", text)
    return linear_search(text, "".join(sorted(set(pattern.options) & set("ims"))))
