"""Runs a live source: each of its items is written once, or lost with this process.

The source cannot be asked again. An item that was taken and is not yet acknowledged by Kafka is
lost if this process is killed; while Kafka is away nothing more is taken, so that senders wait.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event
from typing import Protocol

from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.site import Site
from penstock.connectors.connector import Item, LiveConnector
from penstock.connectors.progress import Progress
from penstock.connectors.source.outlet import Outlet
from penstock.connectors.source.pacing import GivingUp, Unsettled
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.errors import TransientError

__all__ = ["Flushing", "LogFeed", "run_live"]

_FLUSH_SLICE = timedelta(seconds=1)
_DELIVERY_TIMEOUT = timedelta(hours=1)
"""How long items that were taken wait for a Kafka that is away, and their senders with them."""


def run_live(
    graph: Graph, source: Source, connector: LiveConnector, *, site: Site, progress: Progress
) -> None:
    """Run the connector until it has no more items or the site stops."""
    limits = SendLimits(delivery_timeout=_DELIVERY_TIMEOUT)
    with Producer(site.connection, limits=limits) as producer:
        feed = LogFeed(
            Outlet(graph, source, producer),
            producer,
            stop=site.stop,
            stop_timeout=site.settings.services.stop_timeout,
            progress=progress,
        )
        progress.running()
        connector.run(feed)
        feed.settle()


class Flushing(Protocol):
    """What a feed needs of a producer, beside sending."""

    def flush(self, timeout: timedelta) -> None:
        """Wait for the log; TransientError ``kafka.undelivered``: it has not answered in time."""

    def discard(self) -> None:
        """Forget what was not delivered."""


class LogFeed:
    """A feed that holds few items unacknowledged: beyond that it waits, and so do its senders."""

    def __init__(
        self,
        outlet: Outlet,
        producer: Flushing,
        *,
        stop: Event,
        stop_timeout: timedelta,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stop = stop
        self._outlet = outlet
        self._producer = producer
        self._progress = progress
        self._clock = clock
        self._unsettled = Unsettled(clock())
        self._giving_up = GivingUp(stop_timeout)
        self._number = 0

    def put(self, item: Item) -> None:
        """Send what the item gives; see :class:`Feed`."""
        self._progress.took(1)
        self._progress.begin(self._number)
        made = self._outlet.make(item)
        self._progress.finish()
        self._unsettled.add(self._outlet.send(item, made, at=self._number))
        self._number += 1
        if self._unsettled.due(self._clock()):
            self.settle()

    def settle(self) -> None:
        """Wait until the log has everything, and count it."""
        if self._unsettled:
            with self._progress.waiting():
                self._flush()
        settled = self._unsettled.settle(self._clock())
        self._progress.settled(
            passed=settled["passed"],
            filtered=settled["filtered"],
            dead_lettered=settled["dead_lettered"],
        )

    def tell(self, fact: str, text: str) -> None:
        """Show a fact in the source's reports."""
        self._progress.tell(fact, text)

    def complain(self, trouble: str) -> None:
        """Report why items do not get in."""
        self._progress.complain(trouble)

    def _flush(self) -> None:
        """Wait for as long as the site runs, then, once, for as long as a stop may take."""
        while True:
            try:
                self._producer.flush(_FLUSH_SLICE)
            except TransientError as error:
                if error.code != "kafka.undelivered":
                    raise
                if self._giving_up.due(self._clock(), stopping=self.stop.is_set()):
                    self._producer.discard()
                    raise self._lost(error) from error
            else:
                return

    def _lost(self, error: TransientError) -> TransientError:
        count = len(self._unsettled)
        return TransientError(
            f"stopped while Kafka was away: up to {count} items that were taken are lost",
            code="source.items-lost",
            detail=error.message,
        )
