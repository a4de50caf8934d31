"""Which shares of a service this worker has, and how far each has come.

::

    assigned ──► taking over ──► running ──► revoked: committed and closed
                  ▲    │           │
                  │    │ revoked   │ failed: what is not committed is thrown away
                  │    ▼           │
                  │  cancelled     ├──► the commit is in doubt, or the share is another's:
                  └────────────────┘    the worker joins the group anew

A share may be revoked or lost in any of these states. Only the worker's thread calls in here.
"""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.settings.settings import ServiceSettings
from penstock.core.status.report import Counts
from penstock.errors import FencedError, PenstockError, TransientError
from penstock.services.step.retries import Retried
from penstock.services.step.tally import total
from penstock.services.usererrors import LOG
from penstock.services.worker.takeover import MarkingDelivery, Takeover, TaskFactory
from penstock.services.worker.task import Task

__all__ = ["MAX_FENCED", "Assignment", "Reader"]

MAX_FENCED = 8
"""How many shares are fenced at a time."""


class Reader(Protocol):
    """What an assignment needs of a consumer: where it reads, and where not."""

    def pause(self, partitions: Collection[Partition], /) -> None:
        """Hand over no records of these partitions."""

    def resume(self, partitions: Collection[Partition], /) -> None:
        """Hand over records of these partitions again."""

    def seek(self, offsets: Offsets, /) -> None:
        """Go on reading from these offsets."""

    def positions(self) -> Offsets:
        """Return for each partition the offset that is read next."""


@dataclass(slots=True, eq=False)
class _Held:
    """A share of ours: on its way up, or running."""

    share: str
    takeover: Takeover
    coming: Future[Task | None]
    task: Task | None = None

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset(self.takeover.starts)


class Assignment:
    """The shares of one worker; a listener of its consumer.

    A revoke commits what is done and has one time budget for all shares; what does not fit is
    thrown away and done again by the next owner.
    """

    def __init__(
        self,
        ground: TaskFactory,
        *,
        share_of: Callable[[Partition], str],
        settings: ServiceSettings,
        executor: Executor,
    ) -> None:
        self.running: dict[Partition, Task] = {}
        self.sought: set[Partition] = set()
        """Partitions whose position, as the client tells it, is not true before the next record."""
        self.unread: set[Partition] = set()
        """New partitions that the group has no offset for."""
        self._last_dead_letter = ""
        self._ground = ground
        self._share_of = share_of
        self._settings = settings
        self._executor = executor
        self._held: dict[str, _Held] = {}
        self._fenced: dict[str, MarkingDelivery] = {}
        self._to_pause: set[Partition] = set()
        self._past = Counts()
        self.failures = 0
        """How often a share was begun again after trouble."""
        self.setbacks: dict[str, str] = {}
        """Why shares were begun again that have committed nothing since."""
        self.reached: dict[Partition, int] = {}
        """How far shares had come that were begun again, until whoever wants to know clears it."""

    def fence(self, partitions: Collection[Partition]) -> None:
        """End what former owners of these partitions left open, before offsets are asked for.

        The group does not tell offsets that a transaction is moving: one that a killed worker left
        would hold its successor up until it expires. What fails here is tried again by the
        takeover.
        """
        shares = {self._share_of(partition) for partition in partitions} - set(self._held)
        # Threads of their own: those of the executor may be busy restoring for minutes.
        with ThreadPoolExecutor(MAX_FENCED) as threads:
            coming = {share: threads.submit(self._ground.deliver, share) for share in shares}
        for share, delivery in coming.items():
            try:
                self._fenced[share] = delivery.result()
            except PenstockError as error:
                LOG.info("share %s is not fenced yet: %s", share, error)

    def assigned(self, starts: Offsets) -> None:
        """Begin to take over the shares of new partitions."""
        by_share: dict[str, dict[Partition, int]] = {}
        for partition, offset in starts.items():
            by_share.setdefault(self._share_of(partition), {})[partition] = offset
        for share, offsets in by_share.items():
            delivery = self._fenced.pop(share, None)
            unread = self.unread & offsets.keys()
            self.unread -= unread
            takeover = Takeover(
                self._ground, share, starts=offsets, unread=unread, delivery=delivery
            )
            self._begin(takeover)

    def revoked(self, partitions: Collection[Partition]) -> None:
        """Commit and give up the shares of these partitions, within the time for a stop."""
        deadline = monotonic() + self._settings.stop_timeout.total_seconds()
        for held in self._drop(partitions):
            if held.task is not None and monotonic() < deadline:
                self._last_commit(held.task)
            self._give_up(held)

    def lost(self, partitions: Collection[Partition]) -> None:
        """Give up the shares of these partitions, which others have by now."""
        for held in self._drop(partitions):
            self._give_up(held)

    def leave(self) -> None:
        """Give up everything."""
        for delivery in self._fenced.values():
            self._executor.submit(delivery.close)
        self._fenced.clear()
        self.lost([partition for held in self._held.values() for partition in held.partitions])

    def settle(self, reader: Reader) -> None:
        """Let shares run whose takeover is done; raise what will not pass."""
        if self._to_pause:
            reader.pause(self._to_pause)
            self._to_pause = set()
        for held in self._held.values():
            if held.task is None and held.coming.done():
                task = held.coming.result()
                if task is None:
                    continue
                self._let_run(held, task, reader)

    def coming_up(self) -> bool:
        """Return whether :meth:`settle` has shares to begin, which calls the user's code."""
        return any(held.task is None and held.coming.done() for held in self._held.values())

    def forgive(self, at_end: Callable[[Partition, int], bool]) -> bool:
        """Forget setbacks of shares that have nothing to do; return whether all have nothing."""
        idle = [held for held in self._held.values() if _idle(held.task, at_end)]
        for held in idle:
            self.setbacks.pop(held.share, None)
        return len(idle) == len(self._held)

    def release(self, reader: Reader) -> None:
        """Read on where a record that failed is to be tried again now."""
        for task in self.tasks():
            if over := task.release():
                reader.seek({partition: task.positions[partition] for partition in over})
                reader.resume(over)
                self.sought |= set(over)

    def commit(self) -> bool:
        """Commit every running share that has something to commit, all at the same time.

        Return whether any did. Those that were begun are waited for before anything is raised: what
        became of them must be known when the shares are given up.
        """
        tasks = {held.task: held.share for held in self._held.values() if held.task is not None}
        dirty = [task for task in tasks if task.dirty]
        failed: dict[Task, PenstockError] = {}
        for move in (Task.begin_commit, Task.end_commit):
            for task in dirty:
                try:
                    if task not in failed:
                        move(task)
                except PenstockError as error:
                    failed[task] = error
        for task in dirty:
            if task in failed:
                self.reached |= task.positions
            else:
                self.setbacks.pop(tasks[task], None)
        for task, trouble in sorted(failed.items(), key=lambda each: _passes(each[1])):
            if not isinstance(trouble, TransientError):
                raise trouble
            self.fail(task, trouble)
        return len(failed) < len(dirty)

    def fail(self, task: Task, error: TransientError) -> None:
        """Throw a task away with all it has not committed, and begin it again.

        Raises the error where it is not known what was committed: only the group can tell, once
        the worker has joined it anew.
        """
        self.reached |= task.positions
        if task.in_doubt:
            raise error
        held = next(held for held in self._held.values() if held.task is task)
        LOG.warning("share %s begins again: %s", held.share, error)
        self.failures += 1
        self.setbacks[held.share] = error.message
        self._end(held, task)
        self._begin(
            Takeover(
                self._ground,
                held.share,
                starts=task.committed,
                former=task,
                trouble=error.message,
            )
        )

    def tasks(self) -> list[Task]:
        """Return the running tasks."""
        # Copied: the reporter asks from a thread of its own.
        return [held.task for held in list(self._held.values()) if held.task is not None]

    def partitions(self) -> set[Partition]:
        """Return the partitions of all shares, running or on their way up."""
        return {partition for held in self._held.values() for partition in held.partitions}

    def takeovers(self) -> list[Takeover]:
        """Return what is still on its way up."""
        return [held.takeover for held in list(self._held.values()) if held.task is None]

    def retries(self) -> list[Retried]:
        """Return what waits to be tried again."""
        return [retried for task in self.tasks() for retried in task.step.retries]

    def counts(self) -> Counts:
        """Return what became of all records, those of shares that were given up included."""
        return total(self._past, *(task.step.tally.counts() for task in self.tasks()))

    @property
    def last_dead_letter(self) -> str:
        """Return the last dead letter in words, empty where there was none."""
        texts = [task.step.last_dead_letter for task in self.tasks()]
        return next(filter(None, texts), self._last_dead_letter)

    def _let_run(self, held: _Held, task: Task, reader: Reader) -> None:
        at = reader.positions()
        elsewhere = {p: offset for p, offset in task.positions.items() if at.get(p) != offset}
        reader.seek(elsewhere)
        reader.resume(task.positions)
        self.sought |= set(elsewhere)
        task.open()
        held.task = task
        self.running |= dict.fromkeys(held.partitions, task)

    def _begin(self, takeover: Takeover) -> None:
        coming = self._executor.submit(takeover.run)
        self._held[takeover.share] = _Held(takeover.share, takeover, coming)
        self._to_pause |= set(takeover.starts)

    def _drop(self, partitions: Collection[Partition]) -> Iterator[_Held]:
        for share in {self._share_of(partition) for partition in partitions}:
            if held := self._held.pop(share, None):
                self.setbacks.pop(share, None)
                yield held
        self._to_pause -= set(partitions)

    def _last_commit(self, task: Task) -> None:
        try:
            task.commit()
        except (TransientError, FencedError) as error:
            LOG.warning("what was done last is left to the next owner: %s", error)

    def _give_up(self, held: _Held) -> None:
        held.takeover.cancel()
        if held.task is None:
            held.coming.add_done_callback(_close_result)
            return
        self._end(held, held.task)
        self._executor.submit(held.task.close)

    def _end(self, held: _Held, task: Task) -> None:
        """Let a share run no more, and remember what it has counted."""
        for partition in held.partitions:
            del self.running[partition]
        task.step.close()
        self.sought -= held.partitions
        self._past = total(self._past, task.step.tally.committed())
        self._last_dead_letter = task.step.last_dead_letter or self._last_dead_letter


def _passes(error: PenstockError) -> bool:
    return isinstance(error, TransientError)


def _idle(task: Task | None, at_end: Callable[[Partition, int], bool]) -> bool:
    """Return whether a share runs and has nothing to handle or to commit."""
    if task is None or task.dirty or task.holds:
        return False
    return all(at_end(partition, offset) for partition, offset in task.positions.items())


def _close_result(coming: Future[Task | None]) -> None:
    """Close a task that came up after nobody wanted it any more."""
    if not coming.cancelled() and coming.exception() is None and (task := coming.result()):
        task.close()
