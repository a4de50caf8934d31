"""What clients send: messages as JSON, read and checked."""

from typing import Annotated, Any, Literal

import msgspec

from penstock.core.units import UnitError, duration
from penstock.errors import DataError

__all__ = [
    "LONGEST_SQUASH",
    "Authenticate",
    "Followed",
    "Ping",
    "Poll",
    "Request",
    "Subscribe",
    "Subscribing",
    "Unsubscribe",
    "read_poll",
    "read_request",
    "read_several",
    "squash_seconds",
    "wait_seconds",
]

LONGEST_SQUASH = 60.0
_LONGEST_TEXT = 100
_LONGEST_TOKEN = 16 << 10
_MOST_AT_ONCE = 1000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Text = Annotated[str, msgspec.Meta(max_length=_LONGEST_TEXT)]


class _Request(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    pass


class Followed(msgspec.Struct, kw_only=True):
    """Which query is to be followed, and how."""

    id: Name
    live: _Text = ""
    query: msgspec.Raw = msgspec.Raw(b"{}")
    face: Literal["events", "results"] = "events"
    resume: _Text = ""
    squash: _Text = ""


class Subscribe(Followed, tag_field="type", tag="subscribe", forbid_unknown_fields=True):
    """Follow a query."""


class Unsubscribe(_Request, tag="unsubscribe"):
    """Follow it no more."""

    id: Name


class Authenticate(_Request, tag="authenticate"):
    """Go on with another token."""

    token: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOKEN)]


class Ping(_Request, tag="ping"):
    """Say that you are there."""


Request = Subscribe | Unsubscribe | Authenticate | Ping


class Subscribing(Followed, forbid_unknown_fields=True):
    """The same where nothing else can be asked; the type may be left out."""

    type: Literal["subscribe"] = "subscribe"


_Several = Annotated[list[Subscribing], msgspec.Meta(min_length=1, max_length=_MOST_AT_ONCE)]


class Poll(msgspec.Struct, forbid_unknown_fields=True):
    """What a long poll, or the POST of a stream of events, asks for."""

    subscribe: _Several
    wait: _Text = "25s"


_REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_POLL = msgspec.json.Decoder(Poll)
_SUBSCRIBING = msgspec.json.Decoder(Subscribing)


def read_request(text: str | bytes) -> Request:
    """Return the message that a text is; DataError ``live.message`` says what is wrong."""
    found: Request = _read(_REQUEST, text)
    return found


def read_poll(body: bytes) -> Poll:
    """Return the body of a long poll."""
    found: Poll = _read(_POLL, body)
    _distinct(found.subscribe)
    return found


def read_several(texts: list[str]) -> list[Subscribing]:
    """Return the subscriptions of a query string."""
    if not 1 <= len(texts) <= _MOST_AT_ONCE:
        raise _wrong(f"there are 1 to {_MOST_AT_ONCE} subscriptions, not {len(texts)}")
    found = [_read(_SUBSCRIBING, text) for text in texts]
    _distinct(found)
    return found


def squash_seconds(text: str) -> float:
    """Return how long changes are collected; DataError ``live.message``."""
    return _seconds("squash", text, LONGEST_SQUASH) if text else 0.0


def wait_seconds(text: str, *, most: float) -> float:
    """Return how long a poll waits."""
    return _seconds("wait", text, most)


def _seconds(name: str, text: str, most: float) -> float:
    try:
        found = duration(text).total_seconds()
    except UnitError as error:
        raise _wrong(f"{name}: {error}") from None
    if not 0 <= found <= most:
        raise _wrong(f"{name} is at most {most:g}s")
    return found


def _read(decoder: msgspec.json.Decoder[Any], text: str | bytes) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _wrong(str(error)) from None


def _distinct(several: list[Subscribing]) -> None:
    names = [each.id for each in several]
    if len(set(names)) < len(names):
        raise _wrong("two subscriptions have the same id")


def _wrong(text: str) -> DataError:
    return DataError(
        f"the message cannot be read: {text}",
        code="live.message",
        hint="docs/live-protocol.md has all messages",
    )
