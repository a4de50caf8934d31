"""Keeps the broadcast tables of a worker whole and current, each in a thread of its own."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from penstock.errors import ConfigurationError, PenstockError
from penstock.services.state.wholetables import WholeTable, WholeTables
from penstock.services.task.servicelog import ServiceLog
from penstock.services.usererrors import LOG

__all__ = ["Followed", "Following"]

_AGAIN_SECONDS = 1.0
"""How long it waits after trouble."""
_LOOK_SECONDS = 0.05


class Followed(Protocol):
    """Whole tables that somebody keeps current."""

    @property
    def tables(self) -> WholeTables:
        """The tables by their topics."""

    def wait(self, stop: threading.Event) -> bool:
        """Wait until each is read to where it ended at the start; False: ``stop`` was set."""


class Following:
    """Reads each table from its beginning, then on for as long as it is open.

    Trouble with the log is waited for; rows stay as they were meanwhile. A topic that was made anew
    is read anew.
    """

    def __init__(self, log: ServiceLog, tables: WholeTables) -> None:
        self.tables = tables
        self._log = log
        self._stop = threading.Event()
        self._read = {topic: threading.Event() for topic in tables}
        self._progress = dict.fromkeys(tables, (0, 0))
        self._troubles: dict[str, str] = {}
        self._threads = [
            threading.Thread(
                target=self._follow, args=(table,), daemon=True, name=f"penstock-{table.name}"
            )
            for table in tables.values()
        ]

    def start(self) -> None:
        """Begin to read."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End."""
        self._stop.set()
        for thread in self._threads:
            with suppress(RuntimeError):  # it was not started
                thread.join()

    def wait(self, stop: threading.Event) -> bool:
        """Wait until each is read to where it ended at the start; False: ``stop`` was set."""
        for read in self._read.values():
            while not read.wait(_LOOK_SECONDS):
                if stop.is_set() or self._stop.is_set():
                    return False
        return True

    def reading(self) -> Mapping[str, str]:
        """Return how far the tables are that are not whole yet, in words; any thread may ask."""
        found = {}
        for topic, read in self._read.items():
            if not read.is_set():
                done, total = self._progress[topic]
                words = f"{100 * done // total}% read" if total else "not read yet"
                trouble = self._troubles.get(topic)
                found[self.tables[topic].name] = f"{words}, {trouble}" if trouble else words
        return found

    def troubles(self) -> Mapping[str, str]:
        """Return why tables are not current, by their names; empty: they are."""
        return {self.tables[topic].name: text for topic, text in self._troubles.items()}

    def _follow(self, table: WholeTable) -> None:
        positions: dict[int, int] = {}
        while not self._stop.is_set():
            try:
                self._read_on(table, positions)
            except PenstockError as error:
                if self._troubles.get(table.topic) != error.message:
                    LOG.warning("broadcast table %s is not followed: %s", table.name, error)
                self._troubles[table.topic] = error.message
                if isinstance(error, ConfigurationError):  # the topic is not the one it was
                    positions.clear()
                    table.clear()
                self._stop.wait(_AGAIN_SECONDS)

    def _read_on(self, table: WholeTable, positions: dict[int, int]) -> None:
        """Read to the end as it is now, and then on until it is closed."""
        topic = table.topic
        spans = self._log.ends(topic, committed=True)
        for number, (low, _) in spans.items():
            positions.setdefault(number, low)
        ends = {number: high for number, (_, high) in spans.items() if high > positions[number]}
        if ends:
            starts = {number: positions[number] for number in ends}
            total = sum(ends.values()) - sum(starts.values())
            for batch in self._log.batches(topic, starts=starts, ends=ends, stop=self._stop):
                for raw in batch:
                    table.apply(raw)
                    positions[raw.partition() or 0] = (raw.offset() or 0) + 1
                done = sum(positions[number] for number in ends) - sum(starts.values())
                self._progress[topic] = (done, total)
            if self._stop.is_set():
                return
            positions |= ends
        self._troubles.pop(topic, None)
        self._read[topic].set()
        for batch in self._log.batches(topic, starts=positions, ends=None, stop=self._stop):
            for raw in batch:
                table.apply(raw)
                positions[raw.partition() or 0] = (raw.offset() or 0) + 1
