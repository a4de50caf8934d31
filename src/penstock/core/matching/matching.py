"""Whether a text matches: in time that grows with its length, whatever pattern and text say.

Regular expressions run on RE2, which goes through the text once, unless Python's own engine does so
too, and is faster. A LIKE pattern is a chain of
pieces, each of which is looked for behind the one before it; the first place it is found is the
best there is, so the search never goes back: the atomic groups ``(?>...)`` say so to Python's and
to Java's engine alike.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import re2

from penstock.core.matching.backtracking import runs_straight
from penstock.core.matching.pattern import (
    LAST_CODE_POINT,
    Characters,
    Either,
    End,
    PatternError,
    Ranges,
    Repeat,
    Sequence,
    Tree,
    read_pattern,
)

__all__ = ["PLAIN_LIKE", "is_plain_like", "like_matcher", "like_to_regex", "searcher"]

PLAIN_LIKE = re.compile(r"(%?)((?:[^%_\\]|\\.)*)(%?)", re.DOTALL)
"""A LIKE pattern that needs no search: the percent signs at its ends, and the text."""
_MAX_MEMORY = 8 << 20
"""Bytes that RE2 may use for a pattern and its automaton."""
_BREAKS = frozenset("\n\r\u0085\u2028\u2029")


@lru_cache(maxsize=256)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a text holds a match of the pattern, as Java finds it.

    Raises PatternError where the pattern is not one of those that every engine reads alike.
    """
    tree = read_pattern(pattern)
    find = _python_search(tree) if runs_straight(pattern) else _re2_search(tree)
    if not _has_end(tree):
        return find

    def find_to_the_end(text: str) -> bool:
        if find(text):
            return True
        if text[-1:] not in _BREAKS:
            return False
        # The end is also the place before the line break that ends the text.
        return find(text[:-2] if text.endswith("\r\n") else text[:-1])

    return find_to_the_end


def _python_search(tree: Tree) -> Callable[[str], bool]:
    search = re.compile(_text(tree, code=r"\U{:08x}", end=r"\Z")).search
    return lambda text: search(text) is not None


def _re2_search(tree: Tree) -> Callable[[str], bool]:
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        search = re2.compile(_text(tree, code=r"\x{{{:X}}}", end=r"\z"), options).search
    except re2.error as error:
        raise PatternError("the pattern is too large: write shorter repeats", 0) from error
    # Half of a character matches nothing; only Python has it in a text.
    return lambda text: search(text.encode("utf-8", "surrogatepass")) is not None


def is_plain_like(pattern: str) -> bool:
    """Whether a normal LIKE pattern is one text, with or without percent signs at its ends."""
    return PLAIN_LIKE.fullmatch(pattern) is not None


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a text is as the normal LIKE pattern says."""
    match = re.compile(like_to_regex(pattern)).match
    return lambda text: match(text) is not None


def like_to_regex(pattern: str, *, end: str = r"\Z") -> str:
    """Return the expression of Python's that finds what the normal LIKE pattern matches.

    With Java's way to write the ``end`` of a text it is one of Java's.
    """
    first, *rest = _pieces(pattern)
    if not rest:
        return rf"(?s)\A{first}{end}"
    *middle, last = rest
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return rf"(?s)\A{first}{found}" + (rf".*{last}{end}" if last else "")


def _pieces(pattern: str) -> list[str]:
    """Return what stands between the percent signs, each as a regular expression."""
    pieces = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "_":
            pieces[-1] += "."
        else:
            pieces[-1] += _quoted(next(characters) if character == "\\" else character)
    return pieces


def _quoted(character: str) -> str:
    """Return a character as Python and Java both write it."""
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _has_end(tree: Tree) -> bool:
    match tree:
        case End():
            return True
        case Sequence(parts) | Either(parts):
            return any(map(_has_end, parts))
        case Repeat(item):
            return _has_end(item)
    return False


def _text(tree: Tree, *, code: str, end: str) -> str:
    """Write a tree in the form of an engine: how it names a character, and the end of a text."""
    match tree:
        case Characters(ranges):
            return _class(ranges, code)
        case Sequence(items):
            return "".join(_text(item, code=code, end=end) for item in items)
        case Either(branches):
            return f"(?:{'|'.join(_text(branch, code=code, end=end) for branch in branches)})"
        case Repeat(item, low, high):
            times = f"{{{low},{'' if high is None else high}}}"
            return f"(?:{_text(item, code=code, end=end)}){times}"
    return end if isinstance(tree, End) else r"\A"


def _class(ranges: Ranges, code: str) -> str:
    written = "".join(f"{code.format(low)}-{code.format(high)}" for low, high in ranges)
    # Of no character at all: none that is not there.
    return f"[{written}]" if ranges else f"[^{code.format(0)}-{code.format(LAST_CODE_POINT)}]"
