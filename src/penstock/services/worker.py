"""One worker of a service: a member of its group that takes records, handles them and commits.

Long because joining, handling, committing and leaving share one loop and must be read together.
"""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import groupby
from operator import methodcaller
from threading import get_ident
from time import monotonic, time

from penstock.backbone.connection import Connection
from penstock.backbone.consumer import Consumer
from penstock.backbone.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.membership import Listener, Membership
from penstock.backbone.producer import SendLimits
from penstock.backbone.site import Site
from penstock.core.graph import Graph, Service
from penstock.errors import FencedError, TransientError
from penstock.services.assignment import Assignment
from penstock.services.blame import LOG
from penstock.services.delivery import AtLeastOnce, AtMostOnce, ExactlyOnce
from penstock.services.disk import Disk
from penstock.services.measures import Measures
from penstock.services.pace import Pace
from penstock.services.statedelivery import StateAtLeastOnce, StateAtMostOnce
from penstock.services.takeover import LONGEST_DELAY, Ground, MarkingDelivery, delays
from penstock.services.task import Delivery, Task, share_of

__all__ = ["MAX_TAKEOVERS", "Worker"]

MAX_TAKEOVERS = 8
"""How many shares are restored at a time."""

_IDLE_SECONDS = 0.25
_TAKEOVER_SECONDS = 0.02
"""How long the worker waits for records when nothing is due, and while shares are coming up."""
_TICK_SECONDS = 1.0


class Worker:
    """Runs one service until ``site.stop`` is set.

    Records are handled one at a time and in order per partition, by this thread alone; memory is
    bounded by what the client fetches ahead and what waits to be sent. A cluster that is away is
    waited for; errors that will not pass are raised.
    """

    def __init__(self, graph: Graph, service: Service, site: Site) -> None:
        self.service = service.name
        self.group = f"{graph.app}.{service.name}"
        self.joined = False
        """Whether the group has let this worker in, be it without any partition."""
        self.trouble = ""
        """What keeps the worker from its work now; empty: nothing."""
        self.thread = 0
        """The thread it works in."""
        self._batch: tuple[Partition, int, int] | None = None
        self.measures = Measures()
        self._oldest: int | None = None
        self._was_in = False
        self._graph = graph
        self._service = service
        self._site = site
        self._settings = site.settings.services
        self._connection = _patient(site)
        self._consumer: Consumer | None = None
        self.disk = Disk(graph, service, site, connection=self._connection)
        self._executor = ThreadPoolExecutor(
            MAX_TAKEOVERS, thread_name_prefix=f"{service.name}-takeover"
        )
        self.assignment = Assignment(
            self._ground(),
            share_of=lambda partition: share_of(service, partition),
            settings=self._settings,
            executor=self._executor,
        )

    def run(self) -> None:
        """Work until told to stop; then commit, leave the group and return."""
        self.thread = get_ident()
        self.disk.start()
        with self._executor:
            try:
                self._work_on()
            finally:
                self.disk.close()

    @property
    def handling(self) -> str:
        """Return the records in hand, in words; empty: none are."""
        if (batch := self._batch) is None:
            return ""
        (topic, number), first, last = batch
        return f"{topic}[{number}] offset {first}" + (f" to {last}" if last > first else "")

    def _work_on(self) -> None:
        backoff = delays()
        while not self._site.stop.is_set():
            began = monotonic()
            try:
                self._work()
            except (TransientError, FencedError) as error:
                LOG.warning("%s starts again: %s", self.group, error)
                self.trouble = error.message
                self.measures.restarts += 1
                if monotonic() - began > 2 * LONGEST_DELAY.total_seconds():
                    backoff = delays()
                self._site.stop.wait(next(backoff))

    def _work(self) -> None:
        """Be a member of the group from joining to leaving."""
        consumer = self._consumer = Consumer(
            self._connection,
            group=self.group,
            topics=[data.topic.name for data in self._service.reads],
            settings=self._settings,
            membership=Membership(
                # State needs the partitions of one number together.
                strategy="range" if len(self._service.reads) > 1 else "cooperative",
                # Where state is, it knows how far it is: that is committed once it is restored.
                commits_first=not self._service.keeps_state,
            ),
            listener=Listener(
                before_assign=self.assignment.fence,
                on_unread=self.assignment.unread.update,
                on_assign=self._assigned,
                on_revoke=self.assignment.revoked,
                on_lost=self._lost,
                on_skipped=self._skipped,
            ),
        )
        try:
            self._loop(consumer)
            if consumer.trouble() is None:
                self.assignment.commit()
                self.disk.save_positions(self.assignment.tasks())
        finally:
            if consumer.trouble() is not None:
                self.assignment.leave()
            consumer.close()
            self.assignment.leave()

    def _assigned(self, starts: Offsets) -> None:
        self.joined = self._was_in = True
        self.assignment.assigned(starts)

    def _lost(self, partitions: Collection[Partition]) -> None:
        self.joined = False
        self.assignment.lost(partitions)

    def _skipped(self, partition: Partition, start: int, end: int) -> None:
        """Go on where the log begins now, and say what that leaves out."""
        LOG.warning(
            "%s goes on without %s[%s] from %s to %s: retention deleted it before it was read",
            self.group,
            *partition,
            start,
            end,
        )
        self.measures.skipped.see(partition, start, end)
        if task := self.assignment.running.get(partition):
            task.skip_to(partition, end)

    def _loop(self, consumer: Consumer) -> None:
        settings = self._settings
        pace = Pace(settings.commit_interval.total_seconds())
        tick_at = snapshot_at = 0.0
        while not self._site.stop.is_set():
            self.assignment.settle(consumer)
            self.assignment.release(consumer)
            records = consumer.consume(settings.poll_batch, self._wait(pace.commit_at))
            now = monotonic()
            if records:
                pace.took(now, backlog=len(records) >= settings.poll_batch)
                handled = self._handle(records)
                began, now = now, monotonic()
                if handled:
                    self.measures.process.see((now - began) / handled, times=handled)
            if self._tick():
                pace.took(now, backlog=False)
                now = monotonic()
            if now >= tick_at:
                tick_at = now + _TICK_SECONDS
                self.trouble = consumer.trouble() or self._outside()
                if self.joined:
                    self.disk.copy_others(number for _, number in self.assignment.partitions())
                if self._skip_marks(consumer):
                    pace.hurry(now)
            if now >= pace.commit_at or self._full():
                if now >= snapshot_at:
                    snapshot_at = now + settings.snapshot_interval.total_seconds()
                    self.disk.snapshot(self.assignment.tasks())
                pace.committed(began=now, ended=self._commit())

    def _commit(self) -> float:
        """Commit; return when that was done. Measured: how long it took, how old its records."""
        began, oldest = monotonic(), self._oldest
        self._oldest = None
        committed = self.assignment.commit()
        ended = monotonic()
        if committed:
            self.measures.commit.see(ended - began)
        if committed and oldest is not None:
            self.measures.latency.see(max(0.0, time() - oldest / 1000))
        return ended

    def _outside(self) -> str:
        """Say that the group has put this worker out, unless it has only just begun."""
        if self.joined or not self._was_in:
            return ""
        return f"it was silent too long and lost its partitions; joining {self.group} again"

    def _wait(self, commit_at: float) -> float:
        longest = _TAKEOVER_SECONDS if self.assignment.takeovers() else _IDLE_SECONDS
        wakes = [wake for task in self.assignment.tasks() if (wake := task.wakes_at())]
        if wakes:
            longest = min(longest, (min(wakes) - _now()).total_seconds())
        return max(0.0, min(longest, commit_at - monotonic()))

    def _handle(self, records: Sequence[RawRecord]) -> int:
        """Give records to their tasks; return how many were handled."""
        handled = 0
        for partition, several in _by_partition(records):
            # A partition that does not run yet (or no more) is read again from its position.
            if task := self.assignment.running.get(partition):
                held = partition in task.holds
                self._batch = partition, several[0].offset() or 0, several[-1].offset() or 0
                try:
                    done = task.handle(partition, several)
                    if done and self._oldest is None:
                        self._oldest = several[0].timestamp()[1]
                    handled += done
                except TransientError as error:
                    self.assignment.fail(task, error)
                self._batch = None
                self.assignment.sought.discard(partition)
                if partition in task.holds and not held:
                    self._member().pause([partition])
        return handled

    def _tick(self) -> bool:
        """Let each task do what the clock has made due; return whether any of them did."""
        ticked = False
        for task in self.assignment.tasks():
            try:
                ticked |= task.tick()
            except TransientError as error:
                self.assignment.fail(task, error)
        return ticked

    def _skip_marks(self, consumer: Consumer) -> bool:
        """Move past what holds no records, so that a group that has read all has no lag."""
        for partition, offset in consumer.positions().items():
            task = self.assignment.running.get(partition)
            if task is not None and partition not in self.assignment.sought:
                task.skip_to(partition, offset)
        return any(task.dirty for task in self.assignment.tasks())

    def _full(self) -> bool:
        limit = self._settings.outgoing_records
        return any(task.uncommitted >= limit for task in self.assignment.tasks())

    def _ground(self) -> Ground:
        stateful = self._service.keeps_state
        return Ground(
            connection=self._connection,
            changelog=self._graph.changelog(self._service).name if stateful else None,
            deliver=self._deliver,
            make_task=self._make_task,
        )

    def _deliver(self, share: str) -> MarkingDelivery:
        """Make the delivery of a share; with state, or exactly once, it fences the former owner."""
        limits, promise = (
            SendLimits(records=self._settings.outgoing_records),
            self._service.delivery,
        )
        if promise == "exactly_once":
            return self._transactions(share, limits)
        if not self._service.keeps_state:
            kind = AtLeastOnce if promise == "at_least_once" else AtMostOnce
            return kind(self._connection, consumer=self._member, limits=limits)
        state = self._transactions(share, limits)
        if promise == "at_least_once":
            return StateAtLeastOnce(self._connection, state=state, limits=limits)
        return StateAtMostOnce(self._connection, state=state, consumer=self._member, limits=limits)

    def _transactions(self, share: str, limits: SendLimits) -> ExactlyOnce:
        return ExactlyOnce(
            self._connection,
            transactional_id=f"{self.group}.{share}",
            group=lambda: self._member().group,
            limits=limits,
        )

    def _make_task(self, starts: Offsets, delivery: Delivery) -> Task:
        number = min(number for _, number in starts)
        return Task(
            self._graph,
            self._service,
            number=number,
            starts=starts,
            delivery=delivery,
            clock=_now,
            shelf=self.disk.shelf(number),
            at_end=lambda partition, offset: self._member().at_end(partition, offset),
        )

    def _member(self) -> Consumer:
        if self._consumer is None:
            raise RuntimeError("only a member of the group commits")
        return self._consumer


def _by_partition(records: Sequence[RawRecord]) -> Iterator[tuple[Partition, list[RawRecord]]]:
    """Cut a batch where the partition changes; the client gives long runs of each."""
    for number, numbered in groupby(records, methodcaller("partition")):
        for topic, run in groupby(numbered, methodcaller("topic")):
            yield (topic, number), list(run)


def _patient(site: Site) -> Connection:
    """Return the connection with waits that fit into the time for a stop: a commit is two calls."""
    longest = site.connection.settings.request_timeout
    return site.connection.within(min(longest, site.settings.services.stop_timeout / 2))


def _now() -> datetime:
    return datetime.now(UTC)
