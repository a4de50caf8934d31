"""Where a client stands in a query, as a text that it gives back: ``q1.17.9.5d4141``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Token", "read_token"]

_FORM = "q1"
_LONGEST = 100
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Token:
    """The life of a query, the number of the last news of it, and which query it is."""

    life: int
    number: int
    query: str

    def __str__(self) -> str:
        """Return the text."""
        return f"{_FORM}.{self.life}.{self.number}.{self.query}"


def read_token(text: str) -> Token | None:
    """Return the token that a text is; None: it is none of ours."""
    parts = text.split(".") if len(text) <= _LONGEST else ()
    if len(parts) != 4 or parts[0] != _FORM:  # noqa: PLR2004 - as it is written above
        return None
    _, life, number, query = parts
    if not (_is_count(life) and _is_count(number)):
        return None
    return Token(int(life), int(number), query)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
