"""Copies of the state that other workers have: who takes a share over has it on disk already."""

import threading
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import methodcaller

from penstock.backbone.connection import Connection
from penstock.backbone.logrange import Offset
from penstock.backbone.logreader import LogReader
from penstock.backbone.logrecord import RawRecord
from penstock.backbone.topics import Topics
from penstock.errors import PenstockError
from penstock.services.blame import LOG
from penstock.services.shelf import Shelf
from penstock.services.statecodec import MARKER_KEY

__all__ = ["Standby"]

_AGAIN_SECONDS = 5.0
"""How long it waits after trouble: a copy that is late is only slower to take over."""
_GIVE_SECONDS = 10.0


class Standby:
    """Follows the changelog of the shares that are not run here, in a thread of its own.

    What it does is never needed for the right answer: a share without a copy is restored as always.
    ``open_copy`` gives the shelf of a share; one that another process of this host has open is left
    alone.
    """

    def __init__(
        self, connection: Connection, changelog: str, *, open_copy: Callable[[int], Shelf]
    ) -> None:
        self._connection = connection
        self._changelog = changelog
        self._open_copy = open_copy
        self._wanted: frozenset[int] = frozenset()
        self._copies: dict[int, Shelf] = {}
        self._changed = threading.Condition()
        self._interrupt = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="penstock-standby")
        self._thread.start()

    def keep(self, numbers: Iterable[int]) -> None:
        """Follow these shares and no others, from now on."""
        wanted = frozenset(numbers)
        with self._changed:
            if wanted != self._wanted:
                self._wanted = wanted
                self._interrupt.set()
                self._changed.notify_all()

    def give(self, number: int) -> None:
        """Let go of the copy of a share, so that it can be run here; waits until that is done."""
        with self._changed:
            self._wanted -= {number}
            self._interrupt.set()
            self._changed.notify_all()
            self._changed.wait_for(lambda: number not in self._copies, _GIVE_SECONDS)

    def behind(self) -> dict[int, int]:
        """Return how far each copy has come."""
        return {number: copy.position or 0 for number, copy in list(self._copies.items())}

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
                wanted = frozenset[int]() if self._closed else self._wanted
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
                copy = self._open_copy(number)
            except PenstockError as error:
                LOG.info("no standby copy of share %s: %s", number, error)
                continue
            if copy.private:  # a worker of this host has it, and so this host has a copy
                copy.close()
                continue
            with self._changed:
                self._copies[number] = copy

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            self._copies[number].close()
            with self._changed:
                del self._copies[number]
                self._changed.notify_all()

    def _follow(self) -> None:
        """Read on until interrupted."""
        if not self._copies:
            return
        ends = Topics(self._connection).ends(self._changelog)
        for number, copy in self._copies.items():
            low, high = ends[number]
            if copy.position is not None and not low <= copy.position <= high:
                copy.clear()
            if copy.position is None:
                copy.write([], position=0)
        starts = {number: copy.position or 0 for number, copy in self._copies.items()}
        for batch in LogReader(self._connection).batches(
            self._changelog,
            start=Offset(starts),
            partitions=sorted(starts),
            follow=True,
            stop=self._interrupt,
        ):
            for number, records in groupby(batch, methodcaller("partition")):
                self._take(self._copies[number], list(records))

    def _take(self, copy: Shelf, records: list[RawRecord]) -> None:
        pairs = [(raw.key() or b"", raw.value()) for raw in records if raw.key() != MARKER_KEY]
        copy.write(pairs, position=(records[-1].offset() or 0) + 1)
