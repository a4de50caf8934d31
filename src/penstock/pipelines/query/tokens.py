"""The tokens of a query's text, as Spark's lexer cuts it: for its bounds, and to find a name in it.

Nothing is decided by these tokens: what a text means, Spark's parser says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Named", "Token", "deepest", "name_at", "tokens"]

_BLANK = re.compile(r"[ \t\r\n]+")
_LINE_COMMENT = re.compile(r"--(\\\n|[^\r\n])*")
_WORD = re.compile(r"\w+")
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`")
_TEXT = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
_RAW_TEXT = re.compile(r"""[rR](?:'[^']*'|"[^"]*")""")
_OPEN, _CLOSE = "/*", "*/"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text that is neither blank nor comment."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Named:
    """A table's name in the text, and the version behind it."""

    parts: tuple[str, ...]
    start: int
    end: int
    past_end: int
    """The end of ``VERSION AS OF ...``, or of the name where there is none."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens; what is not closed is a token of one character."""
    place = 0
    while place < len(text):
        if found := _BLANK.match(text, place) or _LINE_COMMENT.match(text, place):
            place = found.end()
        elif text.startswith(_OPEN, place):
            place = _comment_end(text, place)
        else:
            token = Token(_piece(text, place), place)
            yield token
            place = token.end


def deepest(found: Sequence[Token]) -> int:
    """Return how many brackets are open at most."""
    depth = most = 0
    for token in found:
        depth += (token.text in "([{") - (token.text in ")]}")
        most = max(most, depth)
    return most


def name_at(found: Sequence[Token], start: int) -> Named | None:
    """Return the table's name that begins at a place of the text; None: there is none."""
    number = next((number for number, token in enumerate(found) if token.start == start), None)
    if number is None or (first := _name(found[number])) is None:
        return None
    parts, last = [first], found[number]
    for dot, token in zip(found[number + 1 :: 2], found[number + 2 :: 2], strict=False):
        if dot.text != "." or (part := _name(token)) is None:
            break
        parts.append(part)
        last = token
    behind = [token for token in found[number:] if token.start >= last.end]
    return Named(tuple(parts), start, last.end, _past_end(behind) or last.end)


def _past_end(found: Sequence[Token]) -> int | None:
    """Return where ``[FOR] VERSION AS OF literal`` ends, if the tokens begin with it."""
    words = [token.text.upper() for token in found[:5]]
    skipped = 1 if words[:1] == ["FOR"] else 0
    kind, *rest = words[skipped:] or [""]
    if kind not in {"VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"}:
        return None
    return found[skipped + 3].end if rest[:2] == ["AS", "OF"] and len(rest) > 2 else None  # noqa: PLR2004


def _name(token: Token) -> str | None:
    if _QUOTED_NAME.fullmatch(token.text):
        return token.text[1:-1].replace("``", "`")
    return token.text if _WORD.fullmatch(token.text) else None


def _piece(text: str, place: int) -> str:
    for pattern in (_RAW_TEXT, _TEXT, _QUOTED_NAME, _WORD):
        if found := pattern.match(text, place):
            return found[0]
    return text[place]


def _comment_end(text: str, place: int) -> int:
    """Return the end of a comment; comments nest."""
    depth = 0
    while place < len(text):
        if text.startswith(_OPEN, place):
            depth, place = depth + 1, place + 2
        elif text.startswith(_CLOSE, place):
            depth, place = depth - 1, place + 2
            if not depth:
                return place
        else:
            place += 1
    return place
