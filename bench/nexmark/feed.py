"""Sends a file of events into the topic, part by part, and the event that ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TextIO

from auction_site import Event, end_of_input, event_of
from nexmark import EVENTS

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.core.graph.data import Stream
from penstock.core.graph.graph import Graph
from penstock.core.records.codec import JsonCodec

__all__ = ["Feed", "open_feed"]

AFTER = timedelta(days=1)
"""How much later than everything else the last event happens."""

_LIMITS = SendLimits(linger=timedelta(milliseconds=50))
_MILLISECOND = timedelta(milliseconds=1)


class Feed:
    """One input: its events in so many parts, and its end when everybody has them."""

    def __init__(
        self, connection: Connection, events: Stream[Event], lines: TextIO, *, part: int
    ) -> None:
        self._connection = connection
        self._events = events
        self._lines = lines
        self._part = part
        self._codec = JsonCodec(events.record)
        self._newest = 0
        self.count = 0

    @property
    def passed(self) -> int:
        """The watermark, in milliseconds, that the end brings; nothing is open then."""
        return self._end_at - self._disorder // _MILLISECOND

    def send(self) -> None:
        """Send the next part; it has arrived when this returns."""
        with Producer(self._connection, limits=_LIMITS) as producer:
            for line in islice(self._lines, self._part):
                event = event_of(line)
                expires = event.auction.expires if event.auction else 0
                self._newest = max(self._newest, event.at, expires)
                self._put(producer, event)
                self.count += 1

    def end(self) -> None:
        """Send the end; it has arrived when this returns."""
        with Producer(self._connection) as producer:
            self._put(producer, end_of_input(self._end_at))

    @property
    def _end_at(self) -> int:
        return self._newest + (AFTER + self._disorder) // _MILLISECOND

    @property
    def _disorder(self) -> timedelta:
        return self._events.event_time.disorder or timedelta()

    def _put(self, producer: Producer, event: Event) -> None:
        topic = self._events.topic
        value = self._codec.encode(event)
        producer.send(topic.name, key=None, value=value, partition=topic.partitioning)


@contextmanager
def open_feed(
    connection: Connection, graph: Graph, file: Path, *, parts: int = 1
) -> Iterator[Feed]:
    """Open the feed of a file of the generator's lines, to be sent in so many parts."""
    (events,) = (data for data in graph.data if data.name == EVENTS)
    if not isinstance(events, Stream):
        raise TypeError(EVENTS)
    with file.open(encoding="utf-8") as lines:
        count = sum(1 for _ in lines)
        lines.seek(0)
        yield Feed(connection, events, lines, part=-(-count // parts))
