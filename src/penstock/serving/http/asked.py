"""What a caller asks for besides the key: a range, and how fresh the answer has to be."""

import base64
import binascii
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

from starlette.requests import HTTPConnection, Request

from penstock.core.asking.questions import Positions
from penstock.core.settings.settings import ServingSettings
from penstock.core.units import UnitError, duration
from penstock.serving.http.problems import Problem

__all__ = [
    "Freshness",
    "Range",
    "lists",
    "mark_of",
    "read_freshness",
    "read_query",
    "read_range",
    "text_of_key",
]

_MOST_POSITIONS = 1000
_MOST_DIGITS = 18
_NAME_CHARACTERS = 100
_ENCODED = "base64:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """What an answer must have: offsets that are waited for, and an age that is refused."""

    at_least: Positions
    wait_seconds: float
    max_stale_seconds: float | None

    def require_topics(self, known: Collection[str]) -> None:
        """Refuse to wait for offsets of topics that the answer has no positions of."""
        for topic in self.at_least:
            if topic not in known:
                text = f"the answer has no positions of {topic!r}"
                raise _wrong("at_least", text, ", ".join(sorted(known)))

    def require(self, stale_seconds: float | None) -> None:
        """Raise a Problem ``answer.stale`` where an answer is too old, or may be."""
        most = self.max_stale_seconds
        if most is None or (stale_seconds is not None and stale_seconds <= most):
            return
        age = "for an unknown time" if stale_seconds is None else f"{stale_seconds:.3f}s"
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "answer.stale",
            f"the answer may be stale {age}, and at most {most:g}s were asked for",
            retry_after=1,
            stale_seconds=stale_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Which keys, and how many of them."""

    prefix: bytes
    start: bytes
    end: bytes | None
    rows: int


def read_query(request: HTTPConnection) -> Mapping[str, str]:
    """Return the parameters of a query; Problem ``query.value``: one of them is there twice.

    Whoever sends two values means one of them, and nobody can say which.
    """
    query = request.query_params
    given = query.multi_items()
    if len(given) > len(query):
        (name, times), *_ = Counter(name for name, _ in given).most_common(1)
        raise _wrong(name[:_NAME_CHARACTERS], f"it is given {times} times", "one value")
    return query


def read_freshness(request: Request, settings: ServingSettings) -> Freshness:
    """Return how fresh an answer has to be; Problem ``query.value``: it cannot be read."""
    query = read_query(request)
    stale = query.get("max_stale")
    limit = settings.wait_limit
    wait = _span("wait", query["wait"]) if "wait" in query else limit
    return Freshness(
        at_least=_positions(query.get("at_least", "")),
        wait_seconds=min(wait, limit).total_seconds(),
        max_stale_seconds=None if stale is None else _span("max_stale", stale).total_seconds(),
    )


def read_range(request: Request, settings: ServingSettings) -> Range:
    """Return which keys are asked for; Problem ``query.value``: that cannot be read."""
    query = read_query(request)
    start = query.get("from", "").encode("utf-8", "surrogateescape")
    if "after" in query:
        start = max(start, _key_after(query["after"]) + b"\x00")
    return Range(
        prefix=query.get("prefix", "").encode("utf-8", "surrogateescape"),
        start=start,
        end=query["to"].encode("utf-8", "surrogateescape") if "to" in query else None,
        rows=_count("limit", query.get("limit"), settings.rows),
    )


def text_of_key(key: bytes) -> str:
    """Return a key as a text; bytes that are none as the characters of a replacement."""
    return key.decode("utf-8", "replace")


def mark_of(key: bytes) -> str:
    """Return what ``after`` takes to go on behind a key, whatever its bytes are."""
    with suppress(UnicodeDecodeError):
        text = key.decode()
        if not text.startswith(_ENCODED):
            return text
    return _ENCODED + base64.urlsafe_b64encode(key).decode()


def _key_after(text: str) -> bytes:
    if not text.startswith(_ENCODED):
        return text.encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode(text.removeprefix(_ENCODED), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise _wrong("after", repr(text), "`next` of the answer before") from error


def _positions(text: str) -> Positions:
    found: Positions = {}
    pieces = [piece for piece in text.split(",") if piece]
    if len(pieces) > _MOST_POSITIONS:
        raise _wrong("at_least", f"{len(pieces)} offsets", f"at most {_MOST_POSITIONS}")
    for piece in pieces:
        topic, _, rest = piece.partition(":")
        number, _, offset = rest.partition(":")
        if not topic or not _is_number(number) or not _is_number(offset):
            raise _wrong("at_least", repr(piece), "TOPIC:PARTITION:OFFSET, several with commas")
        found.setdefault(topic, {})[int(number)] = int(offset)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _span(name: str, text: str) -> timedelta:
    try:
        return max(timedelta(), duration(text))
    except UnitError as error:
        raise _wrong(name, str(error), "500ms, 2s") from error


def _count(name: str, text: str | None, most: int) -> int:
    if text is None:
        return most
    if not _is_number(text) or not 1 <= int(text) <= most:
        raise _wrong(name, repr(text), f"1 to {most}")
    return int(text)


def _wrong(name: str, text: str, allowed: str) -> Problem:
    return Problem(
        HTTPStatus.BAD_REQUEST, "query.value", f"{name}: {text}", path=name, allowed=allowed
    )


def lists(positions: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    """Return positions as JSON has them."""
    return {
        topic: {str(number): offset for number, offset in sorted(offsets.items())}
        for topic, offsets in positions.items()
    }
