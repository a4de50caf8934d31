"""Functions of texts and lists as Spark has them: positions count from one, in characters."""

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["element_at", "lower", "replace", "split_part", "substring", "upper"]

T = TypeVar("T")

_SIZES = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7DC: 0x019B,
    **{code: code + 1 for code in (0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA)},
    **{code: code + 0x20 for code in range(0x10D50, 0x10D66)},
    **{code: code + 0x1B for code in range(0x16EA0, 0x16EB9)},
}
"""Letters whose other case Spark's Unicode tables know and those of Python 3.11 do not."""
_SMALLER = dict(_SIZES)
_LARGER = {small: large for large, small in _SIZES.items()}


def lower(text: str) -> str:
    """Return the text in lower case, by the rules of no particular language."""
    return text.lower() if text.isascii() else text.translate(_SMALLER).lower()


def upper(text: str) -> str:
    """Return the text in upper case, by the rules of no particular language."""
    return text.upper() if text.isascii() else text.translate(_LARGER).upper()


def substring(text: str, position: int, length: int) -> str:
    """Return a part of a text; a position below zero counts from its end."""
    start = position - 1 if position > 0 else position + len(text) if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def replace(text: str, old: str, new: str) -> str:
    """Return the text with one part replaced wherever it stands; an empty part stands nowhere."""
    return text.replace(old, new) if old else text


def split_part(text: str, delimiter: str, number: int) -> str:
    """Return one of the parts between delimiters; a number below zero counts from the end."""
    parts = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else number + len(parts)
    return parts[index] if 0 <= index < len(parts) else ""


def element_at(items: Sequence[T], position: int) -> T | None:
    """Return an item of a list; a position below zero counts from its end."""
    index = position - 1 if position > 0 else position + len(items)
    return items[index] if position and 0 <= index < len(items) else None
