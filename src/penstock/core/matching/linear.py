"""Regular expressions as RE2 reads them: matched in time that grows with the text alone.

For patterns that somebody types or sends and that only Python reads. What RE2 cannot match so,
references back and looks around, is refused. Patterns that Spark reads too are in `matching`.
"""

from collections.abc import Callable
from functools import lru_cache

import re2

from penstock.core.matching.plain import plain_search

__all__ = ["LONGEST_PATTERN", "linear_search"]

LONGEST_PATTERN = 10_000
"""Characters of a pattern."""
_MAX_MEMORY = 8 << 20
"""Bytes that RE2 may use for a pattern and its automaton."""


@lru_cache(maxsize=1024)
def linear_search(pattern: str, flags: str = "") -> Callable[[str], bool]:
    """Return what tells whether a text holds a match; ``flags`` are those of ``(?ims:...)``.

    Raises a ValueError that says what is wrong with the pattern.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {LONGEST_PATTERN:,} characters")
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        search = re2.compile(f"(?{flags}:{pattern})" if flags else pattern, options).search
    except re2.error as error:
        raise ValueError(_words(error)) from error
    # Half of a character matches nothing; only Python has it in a text.
    return plain_search(
        pattern, flags, lambda text: search(text.encode("utf-8", "surrogatepass")) is not None
    )


def _words(error: Exception) -> str:
    """Return what RE2 says, as text and at a length that can be read."""
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


_LONGEST_REASON = 200
