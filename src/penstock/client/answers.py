"""What a client is answered, as values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

__all__ = ["AtLeast", "Found", "Positions", "RowChange", "Sent", "offsets_text"]

T_co = TypeVar("T_co", covariant=True)

Positions = Mapping[str, Mapping[int, int]]
"""For each topic and partition, the next offset."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a record stands on the log."""

    topic: str
    partition: int
    offset: int


AtLeast = Sent | Iterable[Sent]
"""What an answer has to contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T_co]):
    """An answer of a table or a state; ``value`` is None where the key has none."""

    key: str
    value: T_co
    positions: Positions = field(default_factory=dict)
    """Everything before these offsets is in the answer."""
    stale_seconds: float | None = None
    """How old the answer may be, at most; None: not known."""
    stale: bool = False
    """Whether a standby gave it, because the owner of the key is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange(Generic[T_co]):
    """What a client that listens to a table, a state or a query is told.

    ``row``: a row as it is, at the beginning. ``ready``: all rows were told. ``change``: a row was
    written, or deleted (``value`` is None). ``reset``: too much happened during a break; forget all
    rows, they are told again.
    """

    kind: Literal["row", "ready", "change", "reset"]
    key: str = ""
    """Empty for a query: its rows say which they are."""
    value: T_co | None = None
    before: T_co | None = None
    """The row before the change; None: there was none."""


def offsets_text(at_least: AtLeast) -> str:
    """Return places on the log as a gateway takes them: the last one of each partition."""
    last: dict[tuple[str, int], int] = {}
    for sent in (at_least,) if isinstance(at_least, Sent) else at_least:
        place = sent.topic, sent.partition
        last[place] = max(last.get(place, -1), sent.offset)
    return ",".join(f"{topic}:{number}:{last[topic, number]}" for topic, number in sorted(last))
