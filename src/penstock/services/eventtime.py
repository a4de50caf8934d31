"""How far event time has come in one task."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from penstock.core.graph import OnLog, Stream
from penstock.core.schema import Scalar
from penstock.services.instants import LAST, instant, micros

__all__ = ["EventTime"]

_MILLISECOND = 1000


class EventTime:
    """The newest event time of the task's records, each less the disorder its stream allows.

    It never goes back. A time that is no instant at all (before year 1, after 9999) is not taken.
    """

    def __init__(self, reads: Iterable[OnLog]) -> None:
        self.micros: int | None = None
        self.changed = False
        """Whether it moved since the last commit."""
        self._readers = {
            data.topic.name: reader for data in reads if (reader := _reader(data)) is not None
        }
        self._disorder = {data.topic.name: _disorder(data) for data in reads}

    @property
    def known(self) -> bool:
        """Return whether any of the streams has an event time."""
        return bool(self._readers)

    @property
    def at(self) -> datetime | None:
        """Return the instant; None: no record has had one yet."""
        return None if self.micros is None else instant(self.micros)

    def of(self, topic: str, record: Any) -> int | None:
        """Return how far a record moves event time; None where it has none."""
        read = self._readers.get(topic)
        return None if read is None else read(record) - self._disorder[topic]

    def see(self, topic: str, record: Any) -> None:
        """Take note of a record."""
        if (at := self.of(topic, record)) is not None:
            self._move(at)

    def see_all(self, at: datetime) -> None:
        """Take note of an instant as if a record of each stream had come with it."""
        for topic in self._readers:
            self._move(micros(at) - self._disorder[topic])

    def restore(self, at: int) -> None:
        """Begin where a former task was."""
        self.micros = at

    def _move(self, at: int) -> None:
        if (self.micros is None or at > self.micros) and -LAST < at <= LAST:
            self.micros = at
            self.changed = True


def _reader(data: OnLog) -> Callable[[Any], int] | None:
    """Return the function from a record to its event time in microseconds."""
    schema = data.record.schema
    field = schema.field(schema.time) if schema.time else None
    if field is None:
        return None
    read = attrgetter(field.name)
    if field.type == Scalar("int"):
        return lambda record: read(record) * _MILLISECOND
    return lambda record: micros(read(record))


def _disorder(data: OnLog) -> int:
    allowed = data.disorder if isinstance(data, Stream) else None
    return (allowed or timedelta()) // timedelta(microseconds=1)
