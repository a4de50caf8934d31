"""The loop of a worker: take records, handle them, let the clock do its part, commit.

The way is one: records go down from the member of the group through the assignment to a task and
its step. What comes back is a value: how many were handled, what became of a commit.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import inf
from operator import methodcaller
from threading import Event
from time import monotonic, time

from penstock.backbone.client.logrecord import Partition, RawRecord
from penstock.core.graph.parts import Service
from penstock.core.instants import EPOCH
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import TransientError
from penstock.services.task.servicelog import Member
from penstock.services.task.task import Task
from penstock.services.worker.assignment import Outcome
from penstock.services.worker.membership import trouble_of
from penstock.services.worker.pace import (
    CommitSchedule,
    commit_interval,
    longest_slice,
    portion_of,
    seconds_to_wait,
)
from penstock.services.worker.work import Work

__all__ = ["Loop"]

_LOOK_SECONDS = 1.0
"""How often a worker sees how things stand."""


class Loop:
    """One membership of a worker in its group, after joining and before leaving.

    Whatever it raises ends the membership; :meth:`look_back` is called then.
    """

    def __init__(
        self, work: Work, member: Member, *, service: Service, settings: ServiceSettings
    ) -> None:
        self._work = work
        self._assignment = work.assignment
        self._member = member
        self._settings = settings
        self._slice = longest_slice(settings).total_seconds()
        self._schedule = CommitSchedule(commit_interval(service, settings).total_seconds())
        self._portion = portion_of(service, settings)
        self._first_tick = 0
        self._oldest: int | None = None
        """When the oldest record that is not committed was written, in milliseconds."""
        self._look_at = self._snapshot_at = 0.0

    def run(self, stop: Event) -> None:
        """Work until told to stop, or until something fails that ends the membership."""
        asked = monotonic()
        while not stop.is_set():
            asked = self.round(asked)

    def round(self, asked: float) -> float:
        """Handle what has come and is due; return when the group was asked for records."""
        schedule, portion = self._schedule, self._portion
        self._work.topics.require_same()
        self._settle()
        self._keep_membership(monotonic() - asked)
        careful = self._careful()
        count = 1 if careful else portion.count
        records = self._member.consume(count, self._wait())
        now = asked = monotonic()
        deadline = now if careful else now + self._slice
        if records:
            schedule.took(now, backlog=len(records) >= count)
            handled = self._handle(records, deadline=deadline)
            began, now = now, monotonic()
            if handled:
                portion.took(now - began, records=handled)
                self._work.measures.process.see((now - began) / handled, times=handled)
        if careful:
            self.commit()  # a timer that goes off is alone too
        if self._tick(deadline):
            schedule.took(now, backlog=False)
            now = monotonic()
        self._keep_membership(now - asked)
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look_up()
            if self._skip_marks():
                schedule.took(now, backlog=False)
        if now >= schedule.commit_at or self._full() or careful:
            if now >= self._snapshot_at:
                self._snapshot_at = now + self._settings.snapshot_interval.total_seconds()
                self._work.disk.snapshot(self._assignment.tasks())
            schedule.committed(began=now, ended=self.commit())
        return asked

    def commit(self) -> float:
        """Commit; return when that was done. Measured: how long it took, how old its records."""
        work, oldest = self._work, self._oldest
        self._oldest = None
        began = monotonic()
        outcome = self._assignment.commit()
        ended = monotonic()
        self._take_care(outcome)
        if outcome.committed:
            work.setback = ""
            work.measures.commit.see(ended - began)
            if oldest is not None:
                work.measures.latency.see(max(0.0, time() - oldest / 1000))
        work.care.forget()
        if work.care and self._assignment.partitions():
            work.care.passed(self._progress(), wakes_at=self._first_timer())
        return ended

    def look_back(self) -> None:
        """Take care of what was in hand when the membership ended, where it took so long."""
        reached = {
            at: end for task in self._assignment.tasks() for at, end in task.positions.items()
        }
        self._work.care.failed(reached, now=monotonic(), now_at=_now())

    def _take_care(self, outcome: Outcome) -> None:
        """Learn from what failed; raise what ends the membership."""
        if outcome.reached:
            self._work.care.failed(outcome.reached, now=monotonic(), now_at=_now())
        if outcome.error is not None:
            raise outcome.error

    def _settle(self) -> None:
        """Let tasks begin and go on; calls of the user's code belong to no open transaction."""
        if self._assignment.coming_up():
            self.commit()
            self._work.activity.begin()
        self._assignment.settle(self._member)
        self._work.activity.end()
        self._assignment.release(self._member)

    def _keep_membership(self, silent: float) -> None:
        """Join anew where the group has put this worker out."""
        if error := self._work.poll_interval.error_after(silent):
            raise error

    def _look_up(self) -> None:
        """See how things stand."""
        work, assignment = self._work, self._assignment
        if assignment.joined and assignment.forgive(self._member):
            work.setback = ""
        work.trouble = trouble_of(
            self._member.trouble(),
            setback=work.setback,
            joined=assignment.joined,
            has_joined=assignment.has_joined,
            group=work.group,
        )
        if assignment.joined:
            work.disk.copy_others(number for _, number in assignment.partitions())

    def _careful(self) -> bool:
        """Return whether one thing is handled at a time, and committed."""
        if not self._work.care:
            return False
        return self._work.care.needed(
            {at for task in self._assignment.tasks() for at in task.holds}
        )

    def _progress(self) -> Mapping[Partition, int | None]:
        """Return the position of every partition of this worker, None where it is not up yet."""
        running = self._assignment.running
        return {
            partition: task.positions[partition] if (task := running.get(partition)) else None
            for partition in self._assignment.partitions()
        }

    def _first_timer(self) -> datetime | None:
        """Return when the first timer is due; a task on its way up may have any."""
        tasks = self._assignment.tasks()
        if self._assignment.takeovers() or not tasks:
            return EPOCH
        return min((at for task in tasks if (at := task.step.wakes_at())), default=None)

    def _wait(self) -> float:
        wakes = [wake for task in self._assignment.tasks() if (wake := task.wakes_at())]
        return seconds_to_wait(
            monotonic(),
            commit_at=self._schedule.commit_at,
            coming_up=bool(self._assignment.takeovers()),
            wakes_in=(min(wakes) - _now()).total_seconds() if wakes else None,
        )

    def _handle(self, records: Sequence[RawRecord], *, deadline: float) -> int:
        """Give records to their tasks; return how many were handled."""
        handled, now = 0, -inf
        for partition, several in _by_partition(records):
            # A partition that does not run yet (or no more) is read again from its position.
            if task := self._assignment.running.get(partition):
                held = partition in task.holds
                if now >= deadline:
                    task.postpone(partition)
                else:
                    handled += self._give(task, partition, several, deadline=deadline)
                    now = monotonic()
                self._assignment.sought.discard(partition)
                if partition in task.holds and not held:
                    self._member.pause([partition])
        return handled

    def _give(
        self, task: Task, partition: Partition, records: list[RawRecord], *, deadline: float
    ) -> int:
        self._begin(task)
        done = 0
        try:
            done = task.handle(partition, records, deadline=deadline)
        except TransientError as error:
            came = Outcome(reached={partition: (records[-1].offset() or 0) + 1})
            self._take_care(came | self._assignment.fail(task, error))
        if done and self._oldest is None:
            self._oldest = records[0].timestamp()[1]
        self._work.activity.end()
        return done

    def _tick(self, deadline: float) -> bool:
        """Let each task do what the clock has made due; return whether any of them did.

        Whoever had no time for it is the first the next time.
        """
        ticked, tasks, care = False, self._assignment.tasks(), self._work.care
        first = self._first_tick % len(tasks) if tasks else 0
        for number, task in enumerate([*tasks[first:], *tasks[:first]], start=first):
            clean = care.clean
            self._begin(task)
            try:
                did = task.tick(deadline=deadline)
            except TransientError as error:
                did = False
                self._take_care(self._assignment.fail(task, error))
            self._work.activity.end()
            ticked |= did
            if did and monotonic() >= deadline:
                self._first_tick = number + 1
                break
            if clean and not did:
                care.forget()
        return ticked

    def _begin(self, task: Task) -> None:
        self._work.care.begin(self._work.activity.begin(task))

    def _skip_marks(self) -> bool:
        """Move past what holds no records, so that a group that has read all has no lag."""
        for partition, offset in self._member.positions().items():
            task = self._assignment.running.get(partition)
            if task is not None and partition not in self._assignment.sought:
                task.skip_to(partition, offset)
        return any(task.dirty for task in self._assignment.tasks())

    def _full(self) -> bool:
        limit = self._settings.outgoing_records
        return any(task.uncommitted >= limit for task in self._assignment.tasks())


def _by_partition(records: Sequence[RawRecord]) -> Iterator[tuple[Partition, list[RawRecord]]]:
    """Cut a batch where the partition changes; the client gives long runs of each."""
    for number, numbered in groupby(records, methodcaller("partition")):
        for topic, run in groupby(numbered, methodcaller("topic")):
            yield (topic, number), list(run)


def _now() -> datetime:
    return datetime.now(UTC)
