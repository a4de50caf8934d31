"""Patterns of LIMITS, LIKE and RLIKE: read once, with one meaning in Python and in Java.

A pattern is part of a declaration, so it is read and refused when that is. What is taken are the
regular expressions in the strict sense (characters, classes, groups, alternatives, repeats and the
two ends), in the form and the meaning they have in Java. For these whether a text holds a match can
be told in one pass; ``matching`` does. Look-around and back references are no part of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "LAST_CODE_POINT",
    "Characters",
    "Either",
    "End",
    "PatternError",
    "Ranges",
    "Repeat",
    "Sequence",
    "Start",
    "Tree",
    "normal_like",
    "read_pattern",
]

MAX_PATTERN = 1_000
MAX_REPEAT = 1_000
MAX_DEPTH = 50
LAST_CODE_POINT = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points: from and to, in order, apart from one another."""


class PatternError(ValueError):
    """A pattern that the two engines would not read alike, and where: ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of the text."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the text, or the place before the line break that ends it."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: "tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    branches: "tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same several times; without ``high`` any number."""

    item: "Tree"
    low: int
    high: int | None


Tree: TypeAlias = Characters | Start | End | Sequence | Either | Repeat

_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_BREAKS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SIGNS = frozenset(r".^$*+?()[]{}|\/-&~#'\"=!<>,:;@%_` ")
_REPEAT = re.compile(r"\*|\+|\?|\{([0-9]{1,5})(,([0-9]{0,5}))?\}")


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


def read_pattern(pattern: str) -> Tree:
    """Return what a pattern says; PatternError where the engines would not read it alike."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern has at most {MAX_PATTERN} characters", MAX_PATTERN)
    reader = _Reader(pattern)
    found = reader.either(depth=0)
    if reader.at < len(pattern):
        raise PatternError("no parenthesis is open", reader.at)
    if not _ends_last(found, last=True):
        message = "nothing but a parenthesis or | stands behind $; write \\$ for the sign"
        raise PatternError(message, pattern.index("$"))
    return found


def _ends_last(tree: Tree, *, last: bool) -> bool:
    """Whether nothing that takes a character can follow an end of the text."""
    match tree:
        case End():
            return last
        case Sequence(items):
            # Another end, and another beginning, take nothing.
            closing = len(items)
            while closing and isinstance(items[closing - 1], End | Start):
                closing -= 1
            return all(
                _ends_last(item, last=last and at >= closing - 1) for at, item in enumerate(items)
            )
        case Either(branches):
            return all(_ends_last(branch, last=last) for branch in branches)
        case Repeat(item, _, high):
            return _ends_last(item, last=last and high == 1)
    return True


class _Reader:
    """Goes through a pattern once."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def either(self, *, depth: int) -> Tree:
        branches = [self._sequence(depth)]
        while self._takes("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _sequence(self, depth: int) -> Tree:
        items: list[Tree] = []
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            items.append(self._item(depth))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _item(self, depth: int) -> Tree:
        if self._takes("^"):
            return Start()
        return End() if self._takes("$") else self._repeated(self._unit(depth))

    def _unit(self, depth: int) -> Tree:
        """Read what a repeat may stand on."""
        start, character = self.at, self._pattern[self.at]
        self.at += 1
        match character:
            case "(":
                return self._group(start, depth + 1)
            case ".":
                return Characters(_apart_from(_BREAKS))
            case "[":
                return self._class(start)
            case "\\":
                return Characters(self._escape(start))
            case "*" | "+" | "?" | "{" | "}" | "]":
                message = f"{character} has nothing to stand on; write \\{character}"
                raise PatternError(message, start)
        return Characters(_one(character))

    def _group(self, start: int, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise PatternError(f"groups stand in one another {MAX_DEPTH} times at most", start)
        if not self._takes("?:") and self._pattern.startswith("?", self.at):
            raise PatternError("only (?:...) is known of the groups with a question mark", start)
        if self._pattern.startswith(")", self.at):
            raise PatternError("the group is empty", self.at)
        found = self.either(depth=depth)
        if not self._takes(")"):
            raise PatternError("a parenthesis is not closed", len(self._pattern) - 1)
        return found

    def _repeated(self, item: Tree) -> Tree:
        match = _REPEAT.match(self._pattern, self.at)
        if match is None:
            return item
        text, low, comma, high = match.group(0, 1, 2, 3)
        counts = [int(count) for count in (low, high) if count]
        if any(count > MAX_REPEAT for count in counts) or counts != sorted(counts):
            raise PatternError(f"a repeat counts up to {MAX_REPEAT}", self.at)
        self.at = match.end()
        if self._pattern.startswith("+", self.at):
            raise PatternError("possessive repeats are not known", self.at)
        # A lazy repeat finds another match, but finds one in the same texts.
        self._takes("?")
        if _REPEAT.match(self._pattern, self.at):
            raise PatternError("a repeat does not stand on a repeat", self.at)
        match text:
            case "*":
                return Repeat(item, 0, None)
            case "+":
                return Repeat(item, 1, None)
            case "?":
                return Repeat(item, 0, 1)
        return Repeat(item, int(low), int(high) if high else None if comma else int(low))

    def _escape(self, start: int) -> Ranges:
        character = self._pattern[self.at : self.at + 1]
        self.at += 1
        named = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
        if character in named:
            return named[character]
        if character and character in "DWS":
            return _apart_from(named[character.lower()])
        if character in _CONTROLS:
            return _one(_CONTROLS[character])
        if character and character in _SIGNS:
            return _one(character)
        raise PatternError(f"\\{character} is not known in patterns", start)

    def _class(self, start: int) -> Characters:
        inverted = self._takes("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self._pattern.startswith("]", self.at):
            found += self._member(start)
            first = False
        self.at += 1
        ranges = _merged(found)
        return Characters(_apart_from(ranges) if inverted else ranges)

    def _member(self, start: int) -> Ranges:
        """Read one character, escape or range of a class."""
        low = self._member_characters(start)
        if not self._pattern.startswith("-", self.at) or self._pattern.startswith("]", self.at + 1):
            return low
        if not _is_one(low):
            raise PatternError("in a class - is written \\-", self.at)
        self.at += 1
        high = self._member_characters(start)
        if not _is_one(high) or high < low:
            raise PatternError("the range has no end or goes backwards", self.at - 1)
        return ((low[0][0], high[0][0]),)

    def _member_characters(self, start: int) -> Ranges:
        offset = self.at
        character = self._pattern[offset : offset + 1]
        if not character:
            raise PatternError("a [ is not closed", start)
        self.at += 1
        if character == "\\":
            return self._escape(offset)
        if character in "[]&" or (character == "-" and not self._at_edge(offset, start)):
            raise PatternError(f"in a class {character} is written \\{character}", offset)
        return _one(character)

    def _at_edge(self, offset: int, start: int) -> bool:
        """Return whether a hyphen stands first or last in its class, where it means itself."""
        return offset == start + 1 or self._pattern.startswith("]", offset + 1)

    def _takes(self, text: str) -> bool:
        found = self._pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def _apart_from(ranges: Ranges) -> Ranges:
    """Return all characters but these."""
    found, following = [], 0
    for low, high in ranges:
        if following < low:
            found.append((following, low - 1))
        following = high + 1
    if following <= LAST_CODE_POINT:
        found.append((following, LAST_CODE_POINT))
    return tuple(found)
