"""Patterns of LIKE and RLIKE: only what Java's and Python's regular expressions both mean.

A pattern is part of the expression, so it is read and refused when the expression is. Beyond what
the two languages share, a repeat without end may stand on one character or class only: Java
recurses once for each turn of a repeated group, and a long record would overflow its stack.
"""

import re
from dataclasses import dataclass

__all__ = ["PatternError", "like_to_regex", "normal_like", "regex_to_python"]

MAX_PATTERN = 1_000
MAX_REPEAT = 100

_BREAKS = "\\n\\r\\u0085\\u2028\\u2029"
_DOT = f"[^{_BREAKS}]"
_END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]\Z)|\Z)"
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}
_SIGNS = frozenset(r".^$*+?()[]{}|\/-&~#'\"=!<>,:;@%_` ")
_REPEAT = re.compile(r"\*|\+|\?|\{([0-9]{1,4})(,([0-9]{0,4}))?\}")


class PatternError(ValueError):
    """A pattern that the two engines would not read alike, and where: ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def normal_like(pattern: str, escape: str = "\\") -> str:
    """Return a LIKE pattern with a backslash as its escape character."""
    found: list[str] = []
    characters = enumerate(pattern)
    for offset, character in characters:
        if character == escape:
            _, following = next(characters, (0, ""))
            if following not in ("%", "_", escape) or not following:
                raise PatternError(f"after {escape!r} comes %, _ or {escape!r} itself", offset)
            found.append("\\" + following if following in "%_\\" else following)
        else:
            found.append("\\\\" if character == "\\" else character)
    return "".join(found)


def like_to_regex(pattern: str) -> str:
    """Return the Python expression that matches all of a text as the normal LIKE pattern does."""
    found: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append(re.escape(next(characters)))
        else:
            found.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "(?s:" + "".join(found) + ")"


@dataclass(slots=True)
class _Group:
    """An open parenthesis: what it holds so far."""

    repeats: bool = False
    empty: bool = True


def regex_to_python(pattern: str) -> str:
    """Return the Python expression that finds what Java finds with the pattern."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern has at most {MAX_PATTERN} characters", MAX_PATTERN)
    return _Translator(pattern).whole()


class _Translator:
    """Goes through a pattern once, item by item."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = [_Group()]
        self._found: list[str] = []

    def whole(self) -> str:
        while self._at < len(self._pattern):
            self._item()
        if len(self._groups) > 1:
            raise PatternError("a parenthesis is not closed", len(self._pattern) - 1)
        return "".join(self._found)

    def _item(self) -> None:
        start, character = self._at, self._pattern[self._at]
        self._at += 1
        self._groups[-1].empty &= character == ")"
        match character:
            case "(":
                self._open(start)
            case ")":
                self._close(start)
            case "|":
                self._found.append("|")
            case "^":
                self._found.append("^")
            case "$":
                self._found.append(_END)
            case "." | "[" | "\\":
                self._one(character, start)
                self._repeat(group=None)
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise PatternError(
                    f"{character} has nothing to stand on; write \\{character}", start
                )
            case _:
                self._found.append(re.escape(character))
                self._repeat(group=None)

    def _one(self, character: str, start: int) -> None:
        if character == ".":
            self._found.append(_DOT)
        elif character == "[":
            self._class(start)
        else:
            self._found.append(self._escape(start))

    def _open(self, start: int) -> None:
        if self._pattern.startswith("?:", self._at):
            self._at += 2
        elif self._pattern.startswith("?", self._at):
            raise PatternError("only (?:...) is known of the groups with a question mark", start)
        self._groups.append(_Group())
        self._found.append("(?:")

    def _close(self, start: int) -> None:
        if len(self._groups) == 1:
            raise PatternError("no parenthesis is open", start)
        group = self._groups.pop()
        if group.empty:
            raise PatternError("the group is empty", start)
        self._found.append(")")
        self._groups[-1].repeats |= group.repeats
        self._repeat(group=group)

    def _repeat(self, *, group: _Group | None) -> None:
        match = _REPEAT.match(self._pattern, self._at)
        if match is None:
            return
        text, low, comma, high = match.group(0, 1, 2, 3)
        endless = text in "*+" or bool(comma and not high)
        if group and (endless or (group.repeats and text != "?")):
            message = "a repeat of a group has an end, and the group has no repeat in it"
            raise PatternError(message, self._at)
        counts = [int(count) for count in (low, high) if count]
        if any(count > MAX_REPEAT for count in counts) or counts != sorted(counts):
            raise PatternError(f"a repeat counts up to {MAX_REPEAT}", self._at)
        self._at = match.end()
        if self._pattern.startswith("+", self._at):
            raise PatternError("possessive repeats are not known", self._at)
        lazy = self._pattern.startswith("?", self._at)
        self._at += lazy
        self._found.append(text + "?" * lazy)
        self._groups[-1].repeats = True
        if _REPEAT.match(self._pattern, self._at):
            raise PatternError("a repeat does not stand on a repeat", self._at)

    def _escape(self, start: int) -> str:
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        if character and character in "dDwWsS":
            return f"\\{character}"
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character and character in _SIGNS:
            return re.escape(character)
        raise PatternError(f"\\{character} is not known in patterns", start)

    def _class(self, start: int) -> None:
        parts = ["["]
        if self._pattern.startswith("^", self._at):
            self._at += 1
            parts.append("^")
        first = True
        while not self._pattern.startswith("]", self._at) or first:
            parts.append(self._member(start))
            first = False
        self._at += 1
        self._found.append("".join(parts) + "]")

    def _member(self, start: int) -> str:
        """Read one character, escape or range of a class."""
        low, kind = self._member_character(start)
        if kind or not self._pattern.startswith("-", self._at):
            return low if kind else _quoted(low)
        if self._pattern.startswith("]", self._at + 1):
            return _quoted(low)
        self._at += 1
        high, kind = self._member_character(start)
        if kind or high < low:
            raise PatternError("the range has no end or goes backwards", self._at - 1)
        return f"{_quoted(low)}-{_quoted(high)}"

    def _member_character(self, start: int) -> tuple[str, bool]:
        """Return a character, or a named class and True."""
        offset = self._at
        character = self._pattern[offset : offset + 1]
        if not character:
            raise PatternError("a [ is not closed", start)
        self._at += 1
        if character == "\\":
            found = self._escape(offset)
            named = found[1:] in tuple("dDwWsS") and len(found) == 2  # noqa: PLR2004
            return (found, True) if named else (_unquoted(found), False)
        if character in "[]&" or (character == "-" and not self._at_edge(offset, start)):
            raise PatternError(f"in a class {character} is written \\{character}", offset)
        return character, False

    def _at_edge(self, offset: int, start: int) -> bool:
        """Return whether a hyphen stands first or last in its class, where it means itself."""
        return offset == start + 1 or self._pattern.startswith("]", offset + 1)


def _unquoted(escape: str) -> str:
    return {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\f": "\f"}.get(escape, escape[-1])


def _quoted(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else re.escape(character)
