"""Durations and sizes as people write them: ``7d``, ``500ms``, ``16MiB``."""

import re
from datetime import timedelta
from typing import Any

__all__ = [
    "LONGEST_SPAN",
    "UnitError",
    "bytes_text",
    "duration",
    "duration_text",
    "size",
    "size_text",
    "span_text",
]

_DURATIONS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SIZES = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
LONGEST_SPAN = timedelta(days=365_000)
"""About a thousand years, forward or back: an instant that far from now, or the sum of several such
spans, is still one that can be written."""
_LARGEST_SIZE = 2**63 - 1
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


class UnitError(ValueError):
    """A text is not a duration or a size; the message says what is."""


def duration(text: str | timedelta) -> timedelta:
    """Return the time span a text names; UnitError for anything but such a text or a timedelta.

    It is not longer than ``LONGEST_SPAN``.

    >>> duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    found = text if isinstance(text, timedelta) else _total(text)
    if not -LONGEST_SPAN <= found <= LONGEST_SPAN:
        raise _too_long(text)
    return found


def _total(text: str) -> timedelta:
    total = timedelta()
    for number, unit in _parts(text, "duration", "500ms, 30s, 10m, 1h30m or 7d"):
        if unit not in _DURATIONS:
            raise UnitError(f"{text!r} has the unit {unit!r}; known are {', '.join(_DURATIONS)}")
        try:
            total += float(number) * _DURATIONS[unit]
        except OverflowError as error:
            raise _too_long(text) from error
    return total


def _too_long(text: str | timedelta) -> UnitError:
    shown = text if isinstance(text, timedelta) else repr(text)
    return UnitError(f"{shown} is longer than {LONGEST_SPAN.days}d, the longest span there is")


def size(text: str | int) -> int:
    """Return the number of bytes a text names; UnitError for anything but that or a number of them.

    >>> size("16MiB")
    16777216
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    total = 0.0
    for number, unit in _parts(text, "size", "512B, 64KiB, 16MiB or 1GB"):
        if unit not in _SIZES:
            raise UnitError(f"{text!r} has the unit {unit!r}; known are {', '.join(_SIZES)}")
        total += float(number) * _SIZES[unit]
    if total > _LARGEST_SIZE:
        raise UnitError(f"{text!r} is larger than anything that can be stored")
    return int(total)


def duration_text(span: timedelta) -> str:
    """Return a time span as :func:`duration` reads it, largest units first."""
    rest = round(span / _DURATIONS["ms"])
    words = []
    for unit in ("d", "h", "m", "s", "ms"):
        step = round(_DURATIONS[unit] / _DURATIONS["ms"])
        count, rest = divmod(rest, step)
        if count:
            words.append(f"{count}{unit}")
    return "".join(words) or "0s"


def size_text(count: int) -> str:
    """Return a number of bytes in the largest binary unit that divides it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % _SIZES[unit] == 0:
            return f"{count // _SIZES[unit]}{unit}"
    return f"{count}B"


def bytes_text(count: float) -> str:
    """Return about how many bytes, in a unit in which that is short.

    >>> bytes_text(0), bytes_text(2_500_000)
    ('0 B', '2.4 MiB')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count >= _SIZES[unit]:
            return f"{count / _SIZES[unit]:.1f} {unit}"
    return f"{count:.0f} B"


def span_text(seconds: float) -> str:
    """Return a time span in its two largest units: ``3s``, ``2m05s``, ``1h20m``, ``9d04h``."""
    whole = int(seconds)
    for unit, size, below, part in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02d}{below}"
    return f"{whole}s"


def _parts(text: Any, noun: str, examples: str) -> list[tuple[str, str]]:
    if not isinstance(text, str):
        number = isinstance(text, int | float) and not isinstance(text, bool)
        said = f"{text!r} has no unit" if number else f"{text!r} is not a {noun}"
        other = ", or a timedelta" if noun == "duration" else ""
        raise UnitError(f"{said}; a {noun} is a text like {examples}{other}")
    parts = _PART.findall(text.strip())
    if not parts or _PART.sub("", text.strip()):
        raise UnitError(f"{text!r} is not a {noun}; write {examples}")
    return parts
