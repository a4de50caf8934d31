"""What a dead letter says: the original record unchanged, and headers with reason and place."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.core.printable import printable
from penstock.core.topic import TopicSpec
from penstock.errors import PenstockError

__all__ = [
    "GIVEN_BACK",
    "HEADER_PREFIX",
    "TIMER",
    "Coordinates",
    "DeadLetter",
    "dead_letter_headers",
    "dead_letter_topic",
    "read_letter",
]

HEADER_PREFIX = "penstock."
GIVEN_BACK = HEADER_PREFIX + "given-back"
"""On a record that was a dead letter: how often it was given back to its stream."""
TIMER = HEADER_PREFIX + "timer"
"""On the dead letter of a timer: it holds no record."""
_MARKS = frozenset(
    ("reason", "code", "topic", "partition", "offset", "part", "at", "given-back", "cut", "timer")
)
"""What a dead letter says of itself. All else is the record's own: what asked, or withdraws."""
_OF_THE_PAST = frozenset(("rounds",))
"""What a record that is given back begins anew."""
_REASON_LIMIT = 2000
_DIGITS = 19
_RETENTION = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a record stands on the log."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return ``topic[partition]@offset``."""
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be used: why, where it stood, and what it was."""

    code: str
    reason: str
    part: str
    at: str
    """When it was given up, RFC 3339."""
    coordinates: Coordinates
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """The record's own headers."""
    given_back: int = 0
    """How often its record had been given back before."""
    whole: bool = True
    """Whether it holds its record as it was: neither cut, nor a timer."""


def dead_letter_topic(app: str) -> TopicSpec:
    """Return the topic that takes an application's dead letters."""
    return TopicSpec(name=f"{app}.dead-letters", partitions=1, retention=_RETENTION)


def dead_letter_headers(
    error: PenstockError, coordinates: Coordinates, *, part: str, at: datetime
) -> list[tuple[str, bytes]]:
    """Return the headers that go beside a dead record's own key, value and headers."""
    texts = {
        # Also where it holds what cannot be encoded: whatever it says, the letter is written.
        "reason": printable(error.message, most=_REASON_LIMIT),
        "code": error.code,
        "topic": coordinates.topic,
        "partition": str(coordinates.partition),
        "offset": str(coordinates.offset),
        "part": part,
        "at": at.isoformat(),
    }
    return [
        # The text of a user's exception may be no text at all.
        (HEADER_PREFIX + name, text.encode(errors="backslashreplace"))
        for name, text in texts.items()
    ]


def read_letter(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> DeadLetter:
    """Return what a record of a dead-letter topic says; where others wrote it, what is there."""
    own, marks = [], {}
    for name, text in headers:
        mark = name.removeprefix(HEADER_PREFIX)
        if mark == name or mark not in _MARKS | _OF_THE_PAST:
            own.append((name, text))
        else:
            marks[mark] = (text or b"").decode(errors="replace")
    place = Coordinates(
        marks.get("topic", ""), _number(marks.get("partition")), _number(marks.get("offset"))
    )
    return DeadLetter(
        code=marks.get("code", ""),
        reason=marks.get("reason", ""),
        part=marks.get("part", ""),
        at=marks.get("at", ""),
        coordinates=place,
        key=key,
        value=value,
        headers=tuple(own),
        given_back=max(0, _number(marks.get("given-back"))),
        whole=not marks.keys() & {"cut", "timer"},
    )


def _number(text: str | None) -> int:
    """Return a number that anybody may have written; -1 where it is none."""
    known = text is not None and len(text) <= _DIGITS and text.isdecimal()
    return int(text) if text and known else -1
