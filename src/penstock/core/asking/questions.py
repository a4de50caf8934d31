"""Questions to the committed state of a service's tasks, and their answers, as values.

They go between processes of one version: the form may change with any.
"""

from typing import Any

import msgspec

__all__ = [
    "Answer",
    "Get",
    "More",
    "Pick",
    "Positions",
    "Question",
    "Refused",
    "Rows",
    "Scan",
    "decode_answer",
    "decode_question",
    "encode_answer",
    "encode_question",
]

Positions = dict[str, dict[int, int]]
"""Topics to the next offset of each partition: everything before it is in the answer."""


class _Asking(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What each question says; ``at_least`` is waited for, for so many seconds at most.

    ``standby``: whoever has a copy of the task is to answer, where its owner is away.
    """

    service: str
    task: int
    state: str
    at_least: Positions = {}
    wait_seconds: float = 0.0
    standby: bool = False


class Get(_Asking, tag="get", frozen=True, kw_only=True, array_like=True):
    """The value of a key."""

    key: bytes


class Pick(_Asking, tag="pick", frozen=True, kw_only=True, array_like=True):
    """The values of some keys, all as one commit left them."""

    keys: list[bytes]


class Scan(_Asking, tag="scan", frozen=True, kw_only=True, array_like=True):
    """The values of keys in their order, from a key on, as many as fit."""

    prefix: bytes = b""
    start: bytes = b""
    end: bytes | None = None
    rows: int = 1000
    size: int = 1 << 20
    """The most bytes of all values together."""
    hold: bool = False
    """Whether the rest is to be kept for ``More``, as the same commit left it: in any order."""


class More(_Asking, tag="more", frozen=True, kw_only=True, array_like=True):
    """The next values of a scan that is held; no rows: it is let go."""

    scan: int
    rows: int = 1000
    size: int = 1 << 20


Question = Get | Pick | Scan | More


class Rows(msgspec.Struct, tag="rows", frozen=True, kw_only=True, array_like=True):
    """Keys with their values as JSON; ``more``: there are further ones behind the last.

    ``stale_seconds`` is how old the state may be; None: nobody knows.
    """

    rows: list[tuple[bytes, bytes]]
    positions: Positions
    stale_seconds: float | None
    more: bool = False
    scan: int = 0
    """The number of the scan that is held for ``More``; 0: none is."""
    standby: bool = False
    """Whether a standby answered, which may be behind the owner."""


class Refused(msgspec.Struct, tag="refused", frozen=True, kw_only=True, array_like=True):
    """Why there is no answer: ``state.moved``, ``state.unknown``, ``position.behind``..."""

    code: str
    text: str
    positions: Positions = {}


Answer = Rows | Refused

_ENCODER = msgspec.msgpack.Encoder()
_QUESTIONS: Any = msgspec.msgpack.Decoder(Question)
_ANSWERS: Any = msgspec.msgpack.Decoder(Answer)


def encode_question(question: Question) -> bytes:
    """Return a question as bytes."""
    return _ENCODER.encode(question)


def decode_question(payload: bytes) -> Question:
    """Return the question that some bytes are; msgspec.MsgspecError: they are none."""
    found: Question = _QUESTIONS.decode(payload)
    return found


def encode_answer(answer: Answer) -> bytes:
    """Return an answer as bytes."""
    return _ENCODER.encode(answer)


def decode_answer(payload: bytes) -> Answer:
    """Return the answer that some bytes are; msgspec.MsgspecError: they are none."""
    found: Answer = _ANSWERS.decode(payload)
    return found
