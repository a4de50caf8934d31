"""Reads the splits of a positioned source in turn, and commits items with the position behind them.

One session has one producer. Whatever fails ends it; the next one begins at what was committed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from threading import Event
from time import monotonic
from typing import Any, Protocol, TypeAlias

from penstock.connectors.connector import (
    Item,
    Moving,
    Position,
    PositionedConnector,
    Reading,
    Telling,
)
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries
from penstock.connectors.source.outlet import Made, Outcome, Outlet, Sending
from penstock.connectors.source.pacing import Idle
from penstock.connectors.source.positions import dump_position
from penstock.connectors.source.splits import Splits

__all__ = ["Run", "Session", "Transactions"]

_IDLE_SECONDS = 0.1

AnyReading: TypeAlias = Reading[Any]


class Transactions(Sending, Protocol):
    """A producer whose records become visible together."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """Make its records visible, all or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What all sessions of one run of a source have in common."""

    topic: str
    """The topic of the positions."""
    stop: Event
    progress: Progress
    slice_seconds: float
    """How long items wait for those behind them, at most, before they are written."""
    retries: Retries
    clock: Callable[[], float] = monotonic


class Session:
    """One producer, and the splits that are read with it from their committed positions on."""

    def __init__(
        self,
        run: Run,
        *,
        connector: PositionedConnector,
        outlet: Outlet,
        producer: Transactions,
        positions: dict[str, Position],
    ) -> None:
        self._run = run
        self._connector = connector
        self._outlet = outlet
        self._producer = producer
        self._positions = positions
        self._splits = Splits()
        self._readings: dict[str, AnyReading] = {}
        self._idle = Idle(run.clock())

    def read_on(self) -> None:
        """Read all splits in turn, until they have ended or the site stops."""
        connector, progress = self._connector, self._run.progress
        while not self._run.stop.is_set():
            self._look()
            progress.running()
            turns = [self._turn(split) for split in list(self._readings)]
            if any(turns):
                continue
            if self._splits.finished(grows=connector.grows):
                progress.ended("read to its end")
                return
            if self._idle.keep_due(self._run.clock()):
                self._keep()
            self._run.stop.wait(_IDLE_SECONDS)

    def close(self) -> None:
        """Close what is open of the source."""
        with ExitStack() as closing_all:
            for reading in self._readings.values():
                closing_all.callback(reading.close)

    def _look(self) -> None:
        """Find splits, and open those that may be open."""
        connector, now = self._connector, self._run.clock()
        if looked := self._splits.look_due(now, grows=connector.grows):
            self._splits.found(connector.splits(), at=now)
        for split in self._splits.to_open():
            self._readings[split] = connector.open(split, self._positions.get(split))
        if text := self._splits.describe():
            self._run.progress.tell("splits", text)
        if looked and isinstance(connector, Telling):
            self._run.progress.complain(connector.complaint())
            for fact, text in connector.facts().items():
                self._run.progress.tell(fact, text)

    def _turn(self, split: str) -> bool:
        """Bring what a split has now onto the log; return whether it may have more at once."""
        if self._run.stop.is_set():
            return False
        reading = self._readings[split]
        if items := reading.read():
            self._bring(split, items, reading)
            return True
        if isinstance(reading, Moving) and (moved := reading.moved()) is not None:
            self._producer.begin()
            self._commit(split, moved)
            self._run.retries.succeeded()
            return True
        if reading.ended:
            self._readings.pop(split).close()
            self._splits.end(split)
            return True
        return False

    def _bring(self, split: str, items: Sequence[Item], reading: AnyReading) -> None:
        """Bring items onto the log, in slices of a bounded time.

        The user's code runs before the transaction and not inside it, so that no transaction
        expires however slow it is.
        """
        behind = 0
        while behind < len(items) and not self._run.stop.is_set():
            made = self._make(islice(items, behind, None))
            behind += len(made)
            self._transact(split, made, reading)

    def _make(self, items: Iterator[Item]) -> list[tuple[Item, Made]]:
        """Return what items give, as many as there is time for; one at least."""
        made: list[tuple[Item, Made]] = []
        until = self._run.clock() + self._run.slice_seconds
        for item in items:
            self._run.progress.begin(item.at)
            made.append((item, self._outlet.make(item)))
            if self._run.clock() >= until or self._run.stop.is_set():
                break
        self._run.progress.finish()
        return made

    def _transact(self, split: str, made: Sequence[tuple[Item, Made]], reading: AnyReading) -> None:
        progress = self._run.progress
        progress.took(len(made))
        with progress.waiting():
            self._producer.begin()
            outcomes: Counter[Outcome] = Counter(
                self._outlet.send(item, each, at=item.at, split=split) for item, each in made
            )
            self._commit(split, reading.position_after(made[-1][0]))
        progress.settled(
            passed=outcomes["passed"],
            filtered=outcomes["filtered"],
            dead_lettered=outcomes["dead_lettered"],
        )
        progress.running()
        self._run.retries.succeeded()

    def _keep(self) -> None:
        """Write the position of a split again, so that the cluster remembers the producer."""
        for split, position in self._positions.items():
            self._producer.begin()
            self._commit(split, position)
            return

    def _commit(self, split: str, position: Position) -> None:
        key, value = dump_position(split, position)
        self._producer.send(self._run.topic, key=key, value=value)
        self._producer.commit()
        self._positions[split] = position
        self._idle.committed(self._run.clock())
