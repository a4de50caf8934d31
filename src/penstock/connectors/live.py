"""Lines that happen once onto the log: each is written once, or lost with this process.

The outside cannot be asked again. A line that was taken and is not yet acknowledged by Kafka is
lost if this process is killed; while Kafka is away nothing more is taken, so that senders wait.
"""

import time
from collections import Counter
from datetime import timedelta
from threading import Event

from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.site import Site
from penstock.connectors.connector import LiveConnector
from penstock.connectors.lines import Line
from penstock.connectors.outlet import Outcome, Outlet
from penstock.connectors.progress import Progress
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.errors import TransientError

__all__ = ["run_live"]

_UNSETTLED_LINES = 2_000
_UNSETTLED_SECONDS = 0.1
_FLUSH_SLICE = timedelta(seconds=1)
_DELIVERY_TIMEOUT = timedelta(hours=1)
"""How long lines that were taken wait for a Kafka that is away, and their senders with them."""


def run_live(
    graph: Graph, source: Source, connector: LiveConnector, *, site: Site, progress: Progress
) -> None:
    """Run the connector until it has no more lines or the site stops."""
    limits = SendLimits(delivery_timeout=_DELIVERY_TIMEOUT)
    with Producer(site.connection, limits=limits) as producer:
        feed = _KafkaFeed(Outlet(graph, source, producer), producer, site, progress)
        progress.running()
        connector.run(feed)
        feed.settle()


class _KafkaFeed:
    """A feed that holds few lines unacknowledged: beyond that it waits, and so do its senders."""

    def __init__(self, outlet: Outlet, producer: Producer, site: Site, progress: Progress) -> None:
        self._outlet = outlet
        self._producer = producer
        self._site = site
        self._progress = progress
        self._unsettled: Counter[Outcome] = Counter()
        self._settled_at = time.monotonic()
        self._number = 0
        self._give_up_at: float | None = None

    @property
    def stop(self) -> Event:
        return self._site.stop

    def put(self, line: Line) -> None:
        self._progress.took(1)
        self._progress.begin(self._number)
        made = self._outlet.make(line)
        self._progress.finish()
        self._unsettled[self._outlet.send(line, made, at=self._number)] += 1
        self._number += 1
        many = self._unsettled.total() >= _UNSETTLED_LINES
        if many or time.monotonic() - self._settled_at >= _UNSETTLED_SECONDS:
            self.settle()

    def settle(self) -> None:
        if self._unsettled:
            with self._progress.waiting():
                self._flush()
            self._progress.settled(
                passed=self._unsettled["passed"],
                filtered=self._unsettled["filtered"],
                dead_lettered=self._unsettled["dead_lettered"],
            )
            self._unsettled.clear()
        self._settled_at = time.monotonic()

    def tell(self, fact: str, text: str) -> None:
        self._progress.tell(fact, text)

    def complain(self, trouble: str) -> None:
        self._progress.complain(trouble)

    def _flush(self) -> None:
        """Wait for as long as the site runs, then, once, for as long as a stop may take."""
        while True:
            try:
                self._producer.flush(_FLUSH_SLICE)
            except TransientError as error:
                if error.code != "kafka.undelivered":
                    raise
                if self._given_up():
                    self._producer.discard()
                    raise self._lost(error) from error
            else:
                return

    def _given_up(self) -> bool:
        if not self.stop.is_set():
            return False
        if self._give_up_at is None:
            allowed = self._site.settings.services.stop_timeout.total_seconds()
            self._give_up_at = time.monotonic() + allowed
        return time.monotonic() >= self._give_up_at

    def _lost(self, error: TransientError) -> TransientError:
        count = self._unsettled.total()
        return TransientError(
            f"stopped while Kafka was away: up to {count} lines that were taken are lost",
            code="source.lines-lost",
            detail=error.message,
        )
