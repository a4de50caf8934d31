"""Patterns in filters: regular expressions that are matched in linear time (RE2).

A pattern comes from a client. RE2 goes through the text once whatever the pattern says; what it
cannot do so, references back and looks around, is refused when the query is made.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from penstock.core.live.refusal import refuse

__all__ = ["LONGEST_PATTERN", "Pattern", "pattern_test", "read_pattern_value"]

LONGEST_PATTERN = 10_000
"""Characters of a pattern."""
_MAX_MEMORY = 8 << 20
"""Bytes that RE2 may use for a pattern and its automaton."""
_OPTIONS = frozenset("imsxu")
_SPACE_AND_COMMENTS = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|\s+|#[^\n]*", re.DOTALL)


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
    except (ValueError, re2.error) as error:
        hint = "write it without references back and looks around"
        raise refuse(f"{error}", operator="$regex", path=path, hint=hint) from error
    return lambda value: type(value) is str and search(value)


@lru_cache(maxsize=1024)
def _search(pattern: Pattern) -> Callable[[str], bool]:
    if len(pattern.text) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {LONGEST_PATTERN:,} characters")
    if unknown := set(pattern.options) - _OPTIONS:
        raise ValueError(f"there is no option {min(unknown)!r}; there are i, m, s and x")
    text = pattern.text
    if "x" in pattern.options:
        text = _SPACE_AND_COMMENTS.sub(lambda found: found[1] or "", text)
    flags = "".join(sorted(set(pattern.options) & set("ims")))
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    search = re2.compile(f"(?{flags}:{text})" if flags else text, options).search
    return lambda value: search(value.encode("utf-8", "surrogatepass")) is not None
