"""What a dead letter says: the original record unchanged, and headers with reason and place."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.core.topic import TopicSpec
from penstock.errors import PenstockError

__all__ = ["HEADER_PREFIX", "Coordinates", "dead_letter_headers", "dead_letter_topic"]

HEADER_PREFIX = "penstock."
_REASON_LIMIT = 2000
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


def dead_letter_topic(app: str) -> TopicSpec:
    """Return the topic that takes an application's dead letters."""
    return TopicSpec(name=f"{app}.dead-letters", partitions=1, retention=_RETENTION)


def dead_letter_headers(
    error: PenstockError, coordinates: Coordinates, *, part: str, at: datetime
) -> list[tuple[str, bytes]]:
    """Return the headers that go beside a dead record's own key, value and headers."""
    texts = {
        "reason": error.message[:_REASON_LIMIT],
        "code": error.code,
        "topic": coordinates.topic,
        "partition": str(coordinates.partition),
        "offset": str(coordinates.offset),
        "part": part,
        "at": at.isoformat(),
    }
    return [(HEADER_PREFIX + name, text.encode()) for name, text in texts.items()]
