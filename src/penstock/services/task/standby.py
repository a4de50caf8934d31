"""Copies of the state that other workers have: who takes a task over has it on disk already."""

import threading
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import methodcaller

from penstock.backbone.client.logrecord import RawRecord
from penstock.errors import ConfigurationError, PenstockError
from penstock.services.state.shelf import Shelf
from penstock.services.step.factory import ChangelogState
from penstock.services.task.servicelog import ServiceLog
from penstock.services.usererrors import LOG

__all__ = ["Standby"]

_AGAIN_SECONDS = 5.0
"""How long it waits after trouble: a copy that is late is only slower to take over."""
_GIVE_SECONDS = 10.0
_CONFIRM_SECONDS = 600.0
"""So often copies are read to the end of the changelog as it is then: between two of these nobody
knows whether a copy that gets no records lacks any."""
_REOPEN_SECONDS = 2.0
"""What another has open is tried again after so long, and then after twice as long each time: a
worker of this host that has just lost the task closes it, one that runs it does not."""


class _Copy:
    """The copy of one task, and what takes its changelog."""

    def __init__(self, shelf: Shelf, kept: ChangelogState, *, changelog: str) -> None:
        self.shelf = shelf
        self.kept = kept
        self._changelog = changelog

    @property
    def position(self) -> int | None:
        """Return where its changelog is to be read on; None: from the start."""
        return self.shelf.positions.get(self._changelog)

    def take(self, records: list[RawRecord]) -> None:
        """Take in records of the changelog; ConfigurationError: they are of other types."""
        for raw in records:
            self.kept.apply(raw.key() or b"", raw.value())
        self.kept.restored({self._changelog: (records[-1].offset() or 0) + 1})


class Standby:
    """Follows the changelog of the tasks that are not run here, in a thread of its own.

    What it does is never needed for the right answer: a task without a copy is restored as always.
    ``open_copy`` gives the shelf of a task and what puts its changelog there; None: another
    process of this host has it, and so this host has a copy.
    """

    def __init__(
        self,
        log: ServiceLog,
        changelog: str,
        *,
        open_copy: Callable[[int], tuple[Shelf, ChangelogState] | None],
    ) -> None:
        self.records = 0
        """How many records of changelogs were read."""
        self._log = log
        self._changelog = changelog
        self._open_copy = open_copy
        self._wanted: frozenset[int] = frozenset()
        self._refused: set[int] = set()
        self._copies: dict[int, _Copy] = {}
        self._changed = threading.Condition()
        self._interrupt = threading.Event()
        self._confirm_at = 0.0
        self._reopen_seconds = _REOPEN_SECONDS
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="penstock-standby")
        self._thread.start()

    @property
    def copies(self) -> int:
        """How many tasks are followed."""
        return len(self._copies)

    def keep(self, numbers: Iterable[int]) -> None:
        """Follow these tasks and no others, from now on. To be called every now and then."""
        wanted = frozenset(numbers)
        with self._changed:
            now = time.monotonic()
            changed = wanted != self._wanted
            if changed:
                self._reopen_seconds = _REOPEN_SECONDS
            missing = not changed and bool(wanted - self._copies.keys() - self._refused)
            due_at = self._confirm_at
            if missing:
                due_at += self._reopen_seconds - _CONFIRM_SECONDS
            if changed or (wanted and now >= due_at):
                if missing:
                    self._reopen_seconds = min(2 * self._reopen_seconds, _CONFIRM_SECONDS)
                self._confirm_at = now + _CONFIRM_SECONDS
                self._wanted = wanted
                self._interrupt.set()
                self._changed.notify_all()

    def give(self, number: int) -> None:
        """Let go of the copy of a task, so that it can be run here; waits until that is done."""
        with self._changed:
            self._wanted -= {number}
            self._interrupt.set()
            self._changed.notify_all()
            self._changed.wait_for(lambda: number not in self._copies, _GIVE_SECONDS)

    def close(self) -> None:
        """Let go of everything."""
        with self._changed:
            self._closed = True
            self._interrupt.set()
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._interrupt.is_set() or bool(self._copies)
                )
                self._interrupt.clear()
                wanted = frozenset[int]() if self._closed else self._wanted - self._refused
            self._settle(wanted)
            if self._closed:
                return
            try:
                self._follow()
            except PenstockError as error:
                LOG.info("standby copies of %s wait: %s", self._changelog, error)
                self._drop(self._copies)
                self._interrupt.wait(_AGAIN_SECONDS)
                self._interrupt.set()

    def _settle(self, wanted: frozenset[int]) -> None:
        """Have the copies that are wanted open, and no others."""
        self._drop(self._copies.keys() - wanted)
        for number in sorted(wanted - self._copies.keys()):
            try:
                opened = self._open_copy(number)
            except PenstockError as error:
                LOG.info("no standby copy of task %s: %s", number, error)
                continue
            if opened is not None:
                with self._changed:
                    self._copies[number] = _Copy(*opened, changelog=self._changelog)

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            self._copies[number].shelf.close()
            with self._changed:
                del self._copies[number]
                self._changed.notify_all()

    def _follow(self) -> None:
        """Read to the end as it is now, and then on until interrupted."""
        if not self._copies:
            return
        asked_at, name = time.time(), self._changelog
        ends = self._log.ends(name, committed=True)
        for number, copy in self._copies.items():
            low, high = ends[number]
            shelf = copy.shelf
            if (at := shelf.positions.get(name)) is not None and (
                shelf.stale or not low <= at <= high
            ):
                shelf.clear()
            if name not in shelf.positions:
                shelf.write([], positions={name: 0})
        self._read({number: ends[number][1] for number in self._copies})
        if self._interrupt.is_set():
            return
        for number, copy in self._copies.items():
            copy.shelf.confirm(asked_at)
            copy.shelf.write([], positions={name: ends[number][1]})
        self._read(None)

    def _read(self, ends: dict[int, int] | None) -> None:
        """Take in what follows the copies, up to these offsets, or until interrupted."""
        starts = {number: copy.position or 0 for number, copy in self._copies.items()}
        for batch in self._log.batches(
            self._changelog, starts=starts, ends=ends, stop=self._interrupt
        ):
            for number, records in groupby(batch, methodcaller("partition")):
                if not self._take(number, list(records)):
                    return

    def _take(self, number: int, records: list[RawRecord]) -> bool:
        """Take in records of one task; return whether to read on."""
        copy = self._copies[number]
        if copy.shelf.stale:  # cut off, or suspended: deletions may be missing between
            self._interrupt.set()
            return False
        try:
            copy.take(records)
        except ConfigurationError as error:
            LOG.warning("no standby copy of task %s: %s", number, error)
            self._refused.add(number)
            copy.shelf.clear()
            self._interrupt.set()
            return False
        self.records += len(records)
        return True
