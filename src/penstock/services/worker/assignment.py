"""Which tasks of a service this worker has, and how far each has come.

::

    assigned ──► taking over ──► running ──► revoked: committed and closed
                  ▲    │           │
                  │    │ revoked   │ failed: what is not committed is thrown away
                  │    ▼           │
                  │  cancelled     ├──► the commit is in doubt, or another worker has the task:
                  └────────────────┘    the worker joins the group anew

A task may be revoked or lost in any of these states. Only the worker's thread calls in here.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.log.membership import Listener
from penstock.core.settings.settings import ServiceSettings
from penstock.core.status.report import Counts
from penstock.errors import FencedError, PenstockError, TransientError
from penstock.services.state.committed import Committed
from penstock.services.step.retries import Retried
from penstock.services.step.tally import total
from penstock.services.task.factory import TaskFactory
from penstock.services.task.servicelog import MarkingDelivery, Member
from penstock.services.task.takeover import Takeover
from penstock.services.task.task import Task
from penstock.services.usererrors import LOG
from penstock.services.worker.measures import Skipped

__all__ = ["MAX_FENCED", "Assignment", "Outcome"]

MAX_FENCED = 8
"""How many tasks are fenced at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of tasks: of all at a commit, or of one that failed."""

    committed: bool = False
    """Whether any task had something to commit, and has."""
    reached: Offsets = field(default_factory=dict)
    """How far those had come that failed."""
    error: PenstockError | None = None
    """What the whole worker begins again for, or ends with."""

    def __or__(self, other: "Outcome") -> "Outcome":
        """Return what became of the tasks of both."""
        reached = dict(self.reached)
        for partition, offset in other.reached.items():
            reached[partition] = max(offset, reached.get(partition, 0))
        return Outcome(
            committed=self.committed or other.committed,
            reached=reached,
            error=self.error or other.error,
        )


@dataclass(slots=True, eq=False)
class _Held:
    """A task of ours: on its way up, or running."""

    name: str
    takeover: Takeover
    coming: Future[Task | None]
    task: Task | None = None

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset(self.takeover.starts)


class Assignment:
    """The tasks of one worker; the listener of its member of the group.

    A revoke commits what is done and has one time budget for all tasks; what does not fit is
    thrown away and done again by the next owner.
    """

    def __init__(
        self, factory: TaskFactory, *, settings: ServiceSettings, executor: Executor
    ) -> None:
        self.joined = False
        """Whether the group has let this worker in, be it without any partition."""
        self.has_joined = False
        """Whether it ever has."""
        self.running: dict[Partition, Task] = {}
        self.sought: set[Partition] = set()
        """Partitions whose position, as the client tells it, is not true before the next record."""
        self.unread: set[Partition] = set()
        """New partitions that the group has no offset for."""
        self.failures = 0
        """How often a task was begun again after trouble."""
        self.setbacks: dict[str, str] = {}
        """Why tasks were begun again that have committed nothing since."""
        self.skipped = Skipped()
        """What retention deleted before it was read."""
        self._last_dead_letter = ""
        self._factory = factory
        self._settings = settings
        self._executor = executor
        self._held: dict[str, _Held] = {}
        self._fenced: dict[str, MarkingDelivery] = {}
        self._to_pause: set[Partition] = set()
        self._past = Counts()

    def listener(self) -> Listener:
        """Return what the member tells of partitions that come and go."""
        return Listener(
            before_assign=self.fence,
            on_unread=self.unread.update,
            on_assign=self.assigned,
            on_revoke=self.revoked,
            on_lost=self.lost,
            on_skipped=self.skip,
        )

    def fence(self, partitions: Collection[Partition]) -> None:
        """End what former owners of these partitions left open, before offsets are asked for.

        The group does not tell offsets that a transaction is moving: one that a killed worker left
        would hold its successor up until it expires. What fails here is tried again by the
        takeover.
        """
        names = {self._factory.name(partition) for partition in partitions} - set(self._held)
        # Threads of their own: those of the executor may be busy restoring for minutes.
        with ThreadPoolExecutor(MAX_FENCED) as threads:
            coming = {name: threads.submit(self._factory.deliver, name) for name in names}
        for name, delivery in coming.items():
            try:
                self._fenced[name] = delivery.result()
            except PenstockError as error:
                LOG.info("task %s is not fenced yet: %s", name, error)

    def assigned(self, starts: Offsets) -> None:
        """Begin to take over the tasks of new partitions."""
        self.joined = self.has_joined = True
        by_task: dict[str, dict[Partition, int]] = {}
        for partition, offset in starts.items():
            by_task.setdefault(self._factory.name(partition), {})[partition] = offset
        for name, offsets in by_task.items():
            delivery = self._fenced.pop(name, None)
            unread = self.unread & offsets.keys()
            self.unread -= unread
            self._begin(
                Takeover(self._factory, name, starts=offsets, unread=unread, delivery=delivery)
            )

    def revoked(self, partitions: Collection[Partition]) -> None:
        """Commit and give up the tasks of these partitions, within the time for a stop."""
        deadline = monotonic() + self._settings.stop_timeout.total_seconds()
        for held in self._drop(partitions):
            if held.task is not None and monotonic() < deadline:
                self._last_commit(held.task)
            self._give_up(held)

    def lost(self, partitions: Collection[Partition]) -> None:
        """Give up the tasks of these partitions, which others have by now."""
        self.joined = False
        for held in self._drop(partitions):
            self._give_up(held)

    def skip(self, partition: Partition, start: int, end: int) -> None:
        """Go on where the log begins now, and say what that leaves out."""
        LOG.warning(
            "task %s goes on without %s[%s] from %s to %s: retention deleted it before it was read",
            self._factory.name(partition),
            *partition,
            start,
            end,
        )
        self.skipped.see(partition, start, end)
        if task := self.running.get(partition):
            task.skip_to(partition, end)

    def leave(self) -> None:
        """Give up everything."""
        for delivery in self._fenced.values():
            self._executor.submit(delivery.close)
        self._fenced.clear()
        self.lost(self.partitions())

    def settle(self, member: Member) -> None:
        """Let tasks run whose takeover is done; raise what will not pass."""
        if self._to_pause:
            member.pause(self._to_pause)
            self._to_pause = set()
        for held in self._held.values():
            if held.task is None and held.coming.done():
                task = held.coming.result()
                if task is None:
                    continue
                self._let_run(held, task, member)

    def coming_up(self) -> bool:
        """Return whether :meth:`settle` has tasks to begin, which calls the user's code."""
        return any(held.task is None and held.coming.done() for held in self._held.values())

    def forgive(self, member: Member) -> bool:
        """Forget setbacks of tasks that have nothing to do; return whether all have nothing."""
        idle = [held for held in self._held.values() if _idle(held.task, member)]
        for held in idle:
            self.setbacks.pop(held.name, None)
        return len(idle) == len(self._held)

    def release(self, member: Member) -> None:
        """Read on where a record that failed is to be tried again now."""
        for task in self.tasks():
            if over := task.release():
                member.seek({partition: task.next_offset(partition) for partition in over})
                member.resume(over)
                self.sought |= set(over)

    def commit(self) -> Outcome:
        """Commit every running task that has something to commit, all at the same time.

        Those that were begun are waited for, whatever happens to the others: what became of them
        must be known when the tasks are given up. One whose trouble may pass begins again.
        """
        names = {held.task: held.name for held in self._held.values() if held.task is not None}
        dirty = [task for task in names if task.dirty]
        failed: dict[Task, PenstockError] = {}
        for move in (Task.begin_commit, Task.end_commit):
            for task in dirty:
                try:
                    if task not in failed:
                        move(task)
                except PenstockError as error:
                    failed[task] = error
        for task in dirty:
            if task not in failed:
                self.setbacks.pop(names[task], None)
        found = Outcome(committed=len(failed) < len(dirty))
        for task, trouble in sorted(failed.items(), key=lambda each: _passes(each[1])):
            # Where the worker itself begins again there is no sense in beginning one task again.
            again = found.error is None and isinstance(trouble, TransientError)
            outcome = self.fail(task, trouble) if again else _ended(task, trouble)
            found |= outcome
        return found

    def fail(self, task: Task, error: PenstockError) -> Outcome:
        """Throw a task away with all it has not committed, and begin it again.

        The outcome has the error where it is not known what was committed: only the group can tell,
        once the worker has joined it anew.
        """
        if task.in_doubt:
            return _ended(task, error)
        held = next(held for held in self._held.values() if held.task is task)
        LOG.warning("task %s begins again: %s", held.name, error)
        self.failures += 1
        self.setbacks[held.name] = error.message
        self._end(held, task)
        again = Takeover(
            self._factory,
            held.name,
            starts=task.committed,
            former=task,
            trouble=error.message,
        )
        self._begin(again)
        return Outcome(reached=dict(task.positions))

    def tasks(self) -> list[Task]:
        """Return the running tasks."""
        # Copied: the reporter asks from a thread of its own.
        return [held.task for held in list(self._held.values()) if held.task is not None]

    def reading(self) -> dict[str, Committed]:
        """Return the committed states of the running tasks, by the tasks' names."""
        held = list(self._held.values())
        return {each.name: each.task.reading for each in held if each.task is not None}

    def partitions(self) -> set[Partition]:
        """Return the partitions of all tasks, running or on their way up."""
        return {partition for held in self._held.values() for partition in held.partitions}

    def takeovers(self) -> list[Takeover]:
        """Return what is still on its way up."""
        return [held.takeover for held in list(self._held.values()) if held.task is None]

    def retries(self) -> list[Retried]:
        """Return what waits to be tried again."""
        return [retried for task in self.tasks() for retried in task.step.retries]

    def counts(self) -> Counts:
        """Return what became of all records, those of tasks that were given up included."""
        return total(self._past, *(task.step.tally.counts() for task in self.tasks()))

    @property
    def last_dead_letter(self) -> str:
        """Return the last dead letter in words, empty where there was none."""
        texts = [task.step.last_dead_letter for task in self.tasks()]
        return next(filter(None, texts), self._last_dead_letter)

    def _let_run(self, held: _Held, task: Task, member: Member) -> None:
        at = member.positions()
        elsewhere = {p: offset for p, offset in task.positions.items() if at.get(p) != offset}
        member.seek(elsewhere)
        member.resume(task.positions)
        self.sought |= set(elsewhere)
        task.open()
        held.task = task
        self.running |= dict.fromkeys(held.partitions, task)

    def _begin(self, takeover: Takeover) -> None:
        coming = self._executor.submit(takeover.run)
        self._held[takeover.task] = _Held(takeover.task, takeover, coming)
        self._to_pause |= set(takeover.starts)

    def _drop(self, partitions: Collection[Partition]) -> Iterator[_Held]:
        for name in {self._factory.name(partition) for partition in partitions}:
            if held := self._held.pop(name, None):
                self.setbacks.pop(name, None)
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
        """Let a task run no more, and remember what it has counted."""
        for partition in held.partitions:
            del self.running[partition]
        task.reading.close()
        task.step.close()
        self.sought -= held.partitions
        self._past = total(self._past, task.step.tally.committed())
        self._last_dead_letter = task.step.last_dead_letter or self._last_dead_letter


def _passes(error: PenstockError) -> bool:
    return isinstance(error, TransientError)


def _ended(task: Task, error: PenstockError) -> Outcome:
    return Outcome(reached=dict(task.positions), error=error)


def _idle(task: Task | None, member: Member) -> bool:
    """Return whether a task runs and has nothing to handle or to commit."""
    if task is None or task.dirty or task.holds:
        return False
    return all(member.at_end(partition, offset) for partition, offset in task.positions.items())


def _close_result(coming: Future[Task | None]) -> None:
    """Close a task that came up after nobody wanted it any more."""
    if not coming.cancelled() and coming.exception() is None and (task := coming.result()):
        task.close()
