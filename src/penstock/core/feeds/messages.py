"""What clients are sent, as JSON; docs/live-protocol.md says what it means."""

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = [
    "Authenticated",
    "Begin",
    "Changes",
    "End",
    "Failed",
    "First",
    "MustRefetch",
    "Pong",
    "Ready",
    "ResultMessage",
    "Resumed",
    "UpToDate",
    "encoded",
]

_ENCODER = msgspec.json.Encoder()


class _Message(msgspec.Struct, omit_defaults=True, tag_field="type"):
    pass


class Begin(_Message, tag="begin"):
    """The whole result follows."""

    id: str
    ordered: bool


class First(_Message, tag="first"):
    """Some documents of the first result."""

    id: str
    documents: msgspec.Raw


class Ready(_Message, tag="ready"):
    """The first result is complete."""

    id: str
    number: int
    positions: Mapping[str, int]
    token: str


class Changes(_Message, tag="changes"):
    """What changed."""

    id: str
    events: msgspec.Raw
    after: int
    number: int
    positions: Mapping[str, int]
    token: str
    squashed: bool = False


class ResultMessage(_Message, tag="results"):
    """The whole result."""

    id: str
    documents: msgspec.Raw
    number: int
    positions: Mapping[str, int]
    token: str


class Resumed(_Message, tag="resumed"):
    """The copy of the client goes on."""

    id: str
    number: int


class MustRefetch(_Message, tag="must-refetch"):
    """The copy of the client is void; the result follows."""

    id: str
    reason: str


class End(_Message, tag="end"):
    """The subscription has ended, as the client asked."""

    id: str


class Failed(_Message, tag="error"):
    """Something is refused, or has ended."""

    problem: Mapping[str, Any]
    id: str = ""


class UpToDate(_Message, tag="up-to-date"):
    """Nothing newer than what the tokens stand for was seen so many seconds ago."""

    stale_seconds: float | None
    tokens: Mapping[str, str]


class Authenticated(_Message, tag="authenticated"):
    """Who the client is now."""

    name: str


class Pong(_Message, tag="pong"):
    """The answer to a ping."""


def encoded(message: _Message) -> bytes:
    """Return a message as it is sent."""
    return _ENCODER.encode(message)
