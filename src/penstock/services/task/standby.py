"""Copies of the state that other workers have: who takes a task over has it on disk already.

A copy also answers for the task while its owner is away. What it shows is always what one commit
left: every commit ends with a note of its positions, and the records of a commit are taken in
together, with that note.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from operator import methodcaller
from typing import NamedTuple

from penstock.backbone.client.logrecord import RawRecord
from penstock.errors import ConfigurationError, PenstockError
from penstock.services.state.committed import Committed, Readable
from penstock.services.state.notes import POSITIONS_KEY
from penstock.services.state.positions import stated_positions
from penstock.services.state.shelf import Shelf
from penstock.services.step.factory import ChangelogState
from penstock.services.task.servicelog import ServiceLog
from penstock.services.usererrors import LOG

__all__ = ["MOST_PENDING", "Copied", "Standby"]

MOST_PENDING = 50_000
"""So many changelog records of one commit wait in memory for its end; a larger commit is taken in
as it comes, and nobody is answered from the copy meanwhile."""

_AGAIN_SECONDS = 5.0
"""How long it waits after trouble: a copy that is late is only slower to take over."""
_GIVE_SECONDS = 10.0
_CONFIRM_SECONDS = 600.0
"""So often copies are read to the end of the changelog as it is then: between two of these nobody
knows whether a copy that gets no records lacks any."""
_REOPEN_SECONDS = 2.0
"""What another has open is tried again after so long, and then after twice as long each time: a
worker of this host that has just lost the task closes it, one that runs it does not."""


class Copied(NamedTuple):
    """The copy of one task as it was opened."""

    shelf: Shelf
    kept: ChangelogState
    """What puts the changelog on the shelf."""
    topics: tuple[str, ...] = ()
    """The inputs whose positions an answer from it has to say."""


class _Copy:
    """The copy of one task: takes its changelog commit by commit, and is read between them."""

    def __init__(self, copied: Copied, *, changelog: str, number: int) -> None:
        self.shelf, self.kept, self._topics = copied
        self.reading = Committed(_logged(self.kept), clock=_now, shelf=self.shelf)
        self._changelog = changelog
        self._number = number
        self._pending: list[RawRecord] = []
        self._following = False

    @property
    def position(self) -> int | None:
        """Return where its changelog is to be read on; None: from the start."""
        return self.shelf.positions.get(self._changelog)

    def catch_up(self) -> None:
        """Hear that records of the past come: compaction has left no commit of them whole."""
        self.reading.close()
        self._pending.clear()
        self._following = False

    def caught_up(self, end: int) -> None:
        """Hear that everything was taken in up to an offset at which a commit ended."""
        self._following = True
        self.shelf.write([], positions={self._changelog: end})
        self._show(self.shelf.get(POSITIONS_KEY), lambda: None)

    def take(self, records: list[RawRecord]) -> int:
        """Take in records of the changelog; return how many: those of whole commits.

        ConfigurationError: they are of other types.
        """
        if not self._following:
            self._save(records)
            return len(records)
        pending = self._pending = [*self._pending, *records]
        ends = (at for at, raw in enumerate(reversed(pending)) if raw.key() == POSITIONS_KEY)
        open_ = next(ends, len(pending))
        whole, self._pending = pending[: len(pending) - open_], pending[len(pending) - open_ :]
        if whole:
            self._show(whole[-1].value(), lambda: self._save(whole))
        if len(self._pending) > MOST_PENDING:
            over, self._pending = self._pending, []
            self.reading.close()
            self._save(over)
            return len(whole) + len(over)
        return len(whole)

    def close(self) -> None:
        """Let go of the shelf; whoever reads it is told."""
        self.reading.close()
        self.shelf.close()

    def _show(self, note: bytes | None, write: Callable[[], None]) -> None:
        """Write what a commit left, and show it with the positions that it stands for."""
        found = stated_positions(note, self._topics, number=self._number)
        if found:
            try:
                self.reading.settle(found, write)
            except BaseException:
                self.reading.close()
                raise
        else:
            self.reading.close()
            write()

    def _save(self, records: list[RawRecord]) -> None:
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
        open_copy: Callable[[int], Copied | None],
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

    def reading(self, number: int) -> Committed | None:
        """Return what is read of the copy of a task; None: there is none. Any thread may ask."""
        copy = self._copies.get(number)
        return None if copy is None or copy.reading.positions is None else copy.reading

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
                    self._copies[number] = _Copy(opened, changelog=self._changelog, number=number)

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            self._copies[number].close()
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
            copy.catch_up()
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
            copy.caught_up(ends[number][1])
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
            self.records += copy.take(records)
        except ConfigurationError as error:
            LOG.warning("no standby copy of task %s: %s", number, error)
            self._refused.add(number)
            copy.catch_up()
            copy.shelf.clear()
            self._interrupt.set()
            return False
        return True


def _logged(kept: ChangelogState) -> Mapping[str, Readable]:
    """Return the states that are on the changelog; those of tables are on their own topics."""
    return {} if kept.tables else kept.readable


def _now() -> datetime:
    return datetime.now(UTC)
