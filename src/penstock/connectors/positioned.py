"""Lines that can be read again onto the log, exactly once.

Each transaction holds the records of some lines and the position behind them: both are committed
or neither. A restart, however the last run ended, takes over the transactional id (which fences a
run that is still alive somewhere) and goes on from the committed position.

The position is a group without members, ``penstock.position.<app>.<source>``. Its offset on the
stream is the position itself, its offset on the dead-letter topic the fingerprint: two numbers are
what is needed, and both topics exist wherever the application runs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from time import monotonic

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.site import Site
from penstock.connectors.connector import Position, PositionedConnector, Reading
from penstock.connectors.lines import Line
from penstock.connectors.outlet import Made, Outcome, Outlet
from penstock.connectors.progress import Progress
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.errors import TransientError

__all__ = ["KEEP_SECONDS", "PositionedRun"]

_IDLE_SECONDS = 0.1
_FIRST_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 5.0
_RETRIES = 20
"""Failures in a row, about a minute and a half of them, before the source gives up."""
_SLICE_SECONDS = 1.0
"""How long lines wait for those behind them, at most, before they are written."""
_SLICES_PER_STOP = 4
KEEP_SECONDS = 3600.0
"""A position that does not move is written again so often: a cluster forgets what is a week old."""


class PositionedRun:
    """One run of one source whose outside has positions."""

    def __init__(
        self,
        graph: Graph,
        source: Source,
        connector: PositionedConnector,
        *,
        site: Site,
        progress: Progress,
    ) -> None:
        self._graph = graph
        self._source = source
        self._connector = connector
        self._site = site
        self._progress = progress
        self._name = f"{graph.app}.{source.name}"
        self._at: Partition = (source.into.topic.name, 0)
        self._fingerprint: Partition = (graph.dead_letters.name, 0)
        self._failures = 0
        self._position: Position | None = None
        self._kept_at = 0.0
        stop = site.settings.services.stop_timeout.total_seconds()
        self._slice = min(_SLICE_SECONDS, stop / _SLICES_PER_STOP)

    def run(self) -> None:
        """Read until the outside ends or the site stops; what is transient is tried again."""
        while not self._site.stop.is_set():
            try:
                self._session()
            except TransientError as error:
                self._failures += 1
                if self._failures > _RETRIES:
                    raise
                self._progress.undone()
                self._progress.degraded(error.message)
                wait = _FIRST_RETRY_SECONDS * 2 ** (self._failures - 1)
                self._site.stop.wait(min(wait, _LONGEST_RETRY_SECONDS))
            else:
                return

    def _session(self) -> None:
        """Read on from the committed position with a producer of its own."""
        with TransactionalProducer(self._site.connection, self._name) as producer:
            self._position = self._committed()
            self._kept_at = monotonic()
            with closing(self._connector.open(self._position)) as reading:
                self._progress.running()
                self._read_on(reading, producer)

    def _read_on(self, reading: Reading, producer: TransactionalProducer) -> None:
        outlet = Outlet(self._graph, self._source, producer)
        while not self._site.stop.is_set():
            if lines := reading.read():
                self._bring(lines, reading, producer, outlet)
            elif reading.ended:
                self._progress.ended("read to its end")
                return
            else:
                self._keep_position(producer)
                self._site.stop.wait(_IDLE_SECONDS)

    def _bring(
        self,
        lines: Sequence[Line],
        reading: Reading,
        producer: TransactionalProducer,
        outlet: Outlet,
    ) -> None:
        """Bring lines onto the log, in slices of a bounded time.

        The user's code runs before the transaction and not inside it, so that no transaction
        expires however slow it is.
        """
        behind = 0
        while behind < len(lines) and not self._site.stop.is_set():
            made = self._make(islice(lines, behind, None), outlet)
            behind += len(made)
            self._transact(made, reading, producer, outlet)

    def _make(self, lines: Iterator[Line], outlet: Outlet) -> list[tuple[Line, Made]]:
        """Return what lines give, as many as there is time for; one at least."""
        made: list[tuple[Line, Made]] = []
        until = monotonic() + self._slice
        for line in lines:
            self._progress.begin(line.at)
            made.append((line, outlet.make(line)))
            if monotonic() >= until or self._site.stop.is_set():
                break
        self._progress.finish()
        return made

    def _transact(
        self,
        made: Sequence[tuple[Line, Made]],
        reading: Reading,
        producer: TransactionalProducer,
        outlet: Outlet,
    ) -> None:
        self._progress.took(len(made))
        with self._progress.waiting():
            producer.begin()
            outcomes: Counter[Outcome] = Counter(
                outlet.send(line, each, at=line.at) for line, each in made
            )
            self._position = reading.position_after(made[-1][0])
            self._commit(self._position, producer)
        self._progress.settled(
            passed=outcomes["passed"],
            filtered=outcomes["filtered"],
            dead_lettered=outcomes["dead_lettered"],
        )
        self._progress.running()
        self._failures = 0

    def _keep_position(self, producer: TransactionalProducer) -> None:
        """Write a position again that has not moved for long; that keeps the producer's id too."""
        if self._position is not None and monotonic() - self._kept_at >= KEEP_SECONDS:
            producer.begin()
            self._commit(self._position, producer)

    def _commit(self, position: Position, producer: TransactionalProducer) -> None:
        producer.commit(self._offsets(position), group=position_group(self._name))
        self._kept_at = monotonic()

    def _committed(self) -> Position | None:
        offsets = PositionStore(self._site.connection).read(self._name)
        if self._at not in offsets:
            return None
        return Position(offsets[self._at], offsets.get(self._fingerprint, 0))

    def _offsets(self, position: Position) -> Offsets:
        return {self._at: position.at, self._fingerprint: position.fingerprint}
