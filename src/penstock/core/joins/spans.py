"""Spans of time that may be negative, as people write them: ``10m``, ``-5s``."""

from datetime import timedelta

from penstock.core.instants import MICROSECOND
from penstock.core.units import duration

__all__ = ["span", "span_words"]


def span(given: str | timedelta | None) -> int | None:
    """Return a span in microseconds; ValueError for what is none.

    >>> span("-1m30s")
    -90000000
    """
    if given is None:
        return None
    if isinstance(given, str) and given.strip().startswith("-"):
        return -(duration(given.strip()[1:]) // MICROSECOND)
    return duration(given) // MICROSECOND


def span_words(micros: int) -> str:
    """Return a span as :func:`span` reads it, to the microsecond.

    >>> span_words(-90_000_000), span_words(500)
    ('-1m30s', '0.5ms')
    """
    sign, left, words = "-" if micros < 0 else "", abs(micros), []
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000)):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count}{unit}")
    seconds, left = divmod(left, 1_000_000)
    if seconds:
        words.append(f"{seconds}s")
    if left:
        words.append(f"{left / 1000:g}ms")
    return sign + "".join(words) if words else "0s"
