"""One worker of a service: a member of its group that takes records, handles them and commits.

Long because joining, handling, committing and leaving share one loop and must be read together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import groupby
from math import inf
from operator import methodcaller
from threading import get_ident
from time import monotonic, time

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.membership import Listener, Membership
from penstock.backbone.log.producer import SendLimits
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.graph.signature import is_async
from penstock.core.units import span_text
from penstock.errors import FencedError, TransientError
from penstock.services.state.instants import EPOCH
from penstock.services.usererrors import LOG
from penstock.services.worker.assignment import Assignment
from penstock.services.worker.delivery import AtLeastOnce, AtMostOnce, ExactlyOnce
from penstock.services.worker.disk import Disk
from penstock.services.worker.isolation import Care
from penstock.services.worker.measures import Measures
from penstock.services.worker.pace import CommitSchedule, Portion, longest_interval, longest_slice
from penstock.services.worker.statedelivery import StateAtLeastOnce, StateAtMostOnce
from penstock.services.worker.takeover import BACKOFF, MarkingDelivery, TaskFactory
from penstock.services.worker.task import Delivery, Task, share_of, transactional_id

__all__ = ["MAX_TAKEOVERS", "Worker"]

MAX_TAKEOVERS = 8
"""How many shares are restored at a time."""

_IDLE_SECONDS = 0.25
_TAKEOVER_SECONDS = 0.02
"""How long the worker waits for records when nothing is due, and while shares are coming up."""
_TICK_SECONDS = 1.0
_LEAST_PORTION_SECONDS = 0.05
"""What is taken at once is worth this much time, however often there is a commit."""
_LONGEST_POLL_INTERVAL = timedelta(days=1)
"""What the client allows."""
_CAREFUL = 2
"""Work that fails after such a part of the transaction's time-out has failed for its length."""


class Worker:
    """Runs one service until ``site.stop`` is set.

    Records are handled one at a time and in order per partition, by this thread alone; memory is
    bounded by what the client fetches ahead and what waits to be sent. A cluster that is away is
    waited for; errors that will not pass are raised.

    The work is cut into slices that are shorter than any time-out it is done under, however slow
    the function. A single call is not interrupted: one that outlives the transaction it is part of
    is made again in a transaction of its own, and one that outlives the membership is made again
    with a membership that lasts twice as long.
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
        self.busy_since: float | None = None
        """Since when it is busy with what it has in hand, by the clock that only goes on."""
        self._task: Task | None = None
        self._first_tick = 0
        self._setback = ""
        self._care = Care()
        self._uncommitted_since: float | None = None
        self.measures = Measures()
        self._oldest: int | None = None
        self._was_in = False
        self._graph = graph
        self._service = service
        self._site = site
        self._settings = site.settings.services
        self._exact = service.delivery == "exactly_once"
        self._slice = longest_slice(self._settings).total_seconds()
        self._poll_interval = self._settings.poll_interval
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
        records = () if (task := self._task) is None else task.in_hand()
        if not records:
            return ""
        first, last = records[0], records[-1]
        text = f"{first.topic()}[{first.partition()}] offset {first.offset()}"
        return text if first is last else f"{text} to {last.offset()}"

    def _work_on(self) -> None:
        delays = BACKOFF.delays()
        while not self._site.stop.is_set():
            began = monotonic()
            try:
                self._work()
            except (TransientError, FencedError) as error:
                LOG.warning("%s starts again: %s", self.group, error)
                self.trouble = self._setback = error.message
                self.measures.restarts += 1
                if BACKOFF.is_over(monotonic() - began):
                    delays = BACKOFF.delays()
                self._site.stop.wait(next(delays))

    def _work(self) -> None:
        """Be a member of the group from joining to leaving."""
        self.joined = False
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
                poll_interval=self._poll_interval,
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
                self._commit()
                self.disk.save_positions(self.assignment.tasks())
        except (TransientError, FencedError):
            for task in self.assignment.tasks():
                self.assignment.reached |= task.positions
            self._look_back()
            raise
        finally:
            self.busy_since = self._uncommitted_since = self._task = None
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
        pace = CommitSchedule(self._commit_interval())
        portion = self._portion()
        tick_at = snapshot_at = 0.0
        asked = monotonic()
        while not self._site.stop.is_set():
            self._settle(consumer)
            self._keep_membership(monotonic() - asked)
            careful = self._careful()
            count = 1 if careful else portion.count
            records = consumer.consume(count, self._wait(pace.commit_at))
            now = asked = monotonic()
            deadline = now if careful else now + self._slice
            if records:
                pace.took(now, backlog=len(records) >= count)
                handled = self._handle(records, deadline=deadline)
                began, now = now, monotonic()
                if handled:
                    portion.took(now - began, records=handled)
                    self.measures.process.see((now - began) / handled, times=handled)
            if careful:
                self._commit()  # a timer that goes off is alone too
            if self._tick(deadline):
                pace.took(now, backlog=False)
                now = monotonic()
            self._keep_membership(now - asked)
            if now >= tick_at:
                tick_at = now + _TICK_SECONDS
                self._look_up(consumer)
                if self._skip_marks(consumer):
                    pace.took(now, backlog=False)
            if now >= pace.commit_at or self._full() or careful:
                if now >= snapshot_at:
                    snapshot_at = now + settings.snapshot_interval.total_seconds()
                    self.disk.snapshot(self.assignment.tasks())
                pace.committed(began=now, ended=self._commit())

    def _settle(self, consumer: Consumer) -> None:
        """Let shares begin and go on; calls of the user's code belong to no open transaction."""
        if self.assignment.coming_up():
            self._commit()
            self.busy_since = monotonic()
        self.assignment.settle(consumer)
        self.busy_since = None
        self.assignment.release(consumer)

    def _keep_membership(self, silent: float) -> None:
        """Join anew where the group has put this worker out, with more time than it took."""
        if silent < self._poll_interval.total_seconds():
            return
        took = timedelta(seconds=silent)
        allowed, self._poll_interval = self._poll_interval, min(2 * took, _LONGEST_POLL_INTERVAL)
        raise TransientError(
            f"a call of {self.service} took {span_text(round(silent))}, and the group waits for"
            f" {span_text(allowed.total_seconds())}: it is made again, with twice the time it took",
            code="service.slow-call",
            hint="raise services.poll_interval above what one call may take",
        )

    def _look_up(self, consumer: Consumer) -> None:
        """See how things stand, once a second."""
        if self.joined and self.assignment.forgive(consumer.at_end):
            self._setback = ""
        again = f"it began again and has come no further yet: {self._setback}"
        stands = again if self._setback else self._outside()
        self.trouble = consumer.trouble() or stands
        if self.joined:
            self.disk.copy_others(number for _, number in self.assignment.partitions())

    def _commit(self) -> float:
        """Commit; return when that was done. Measured: how long it took, how old its records."""
        began, oldest = monotonic(), self._oldest
        self._oldest = None
        committed = self.assignment.commit()
        ended = monotonic()
        if committed:
            self._setback = ""
            self.measures.commit.see(ended - began)
        if committed and oldest is not None:
            self.measures.latency.see(max(0.0, time() - oldest / 1000))
        if self.assignment.reached:
            self._look_back()
        self._uncommitted_since = None
        if self._care and self.assignment.partitions():
            self._care.passed(self._progress(), wakes_at=self._first_timer())
        return ended

    def _look_back(self) -> None:
        """Take care of what failed, where it took so long that its transaction was at its end."""
        reached, self.assignment.reached = self.assignment.reached, {}
        since, limit = self._uncommitted_since, self._settings.transaction_timeout / _CAREFUL
        if self._exact and since is not None and monotonic() - since > limit.total_seconds():
            self._care.learn(reached, now_at=_now())

    def _careful(self) -> bool:
        """Return whether one thing is handled at a time, and committed."""
        if not self._care:
            return False
        return self._care.needed({at for task in self.assignment.tasks() for at in task.holds})

    def _progress(self) -> Mapping[Partition, int | None]:
        """Return the position of every partition of this worker, None where it is not up yet."""
        running = self.assignment.running
        return {
            partition: task.positions[partition] if (task := running.get(partition)) else None
            for partition in self.assignment.partitions()
        }

    def _first_timer(self) -> datetime | None:
        """Return when the first timer is due; a share on its way up may have any."""
        tasks = self.assignment.tasks()
        if self.assignment.takeovers() or not tasks:
            return EPOCH
        return min((at for task in tasks if (at := task.step.wakes_at())), default=None)

    def _commit_interval(self) -> float:
        exact, settings = self._exact, self._settings
        interval = longest_interval(settings) if exact else settings.commit_interval
        return interval.total_seconds()

    def _portion(self) -> Portion:
        most = self._settings.poll_batch
        if is_async(self._service.function):
            # Calls overlap: the more come together, the less one that is slow holds up.
            return Portion(most, seconds=self._slice / 2, least=self._service.concurrency)
        seconds = max(self._commit_interval(), _LEAST_PORTION_SECONDS)
        return Portion(most, seconds=min(seconds, self._slice))

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

    def _handle(self, records: Sequence[RawRecord], *, deadline: float) -> int:
        """Give records to their tasks; return how many were handled."""
        handled, now = 0, -inf
        for partition, several in _by_partition(records):
            # A partition that does not run yet (or no more) is read again from its position.
            if task := self.assignment.running.get(partition):
                held = partition in task.holds
                if now >= deadline:
                    task.postpone(partition)
                else:
                    handled += self._give(task, partition, several, deadline=deadline)
                    now = monotonic()
                self.assignment.sought.discard(partition)
                if partition in task.holds and not held:
                    self._member().pause([partition])
        return handled

    def _give(
        self, task: Task, partition: Partition, records: list[RawRecord], *, deadline: float
    ) -> int:
        self._begin(task)
        done = 0
        try:
            done = task.handle(partition, records, deadline=deadline)
        except TransientError as error:
            self._fail(task, error, reached={partition: (records[-1].offset() or 0) + 1})
        if done and self._oldest is None:
            self._oldest = records[0].timestamp()[1]
        self._task = self.busy_since = None
        return done

    def _tick(self, deadline: float) -> bool:
        """Let each task do what the clock has made due; return whether any of them did.

        Whoever had no time for it is the first the next time.
        """
        ticked, tasks = False, self.assignment.tasks()
        first = self._first_tick % len(tasks) if tasks else 0
        for number, task in enumerate([*tasks[first:], *tasks[:first]], start=first):
            clean = self._uncommitted_since is None
            self._begin(task)
            try:
                did = task.tick(deadline=deadline)
            except TransientError as error:
                did = False
                self._fail(task, error)
            self._task = self.busy_since = None
            ticked |= did
            if did and monotonic() >= deadline:
                self._first_tick = number + 1
                break
            if clean and not did:
                self._uncommitted_since = None
        return ticked

    def _begin(self, task: Task) -> None:
        self._task, self.busy_since = task, monotonic()
        if self._uncommitted_since is None:
            self._uncommitted_since = self.busy_since

    def _fail(self, task: Task, error: TransientError, *, reached: Offsets | None = None) -> None:
        self.assignment.reached |= reached or {}
        self.assignment.fail(task, error)
        self._look_back()

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

    def _ground(self) -> TaskFactory:
        stateful = self._service.keeps_state
        return TaskFactory(
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
            transactional_id=transactional_id(self.group, share),
            group=lambda: self._member().group,
            limits=limits,
            timeout=self._settings.transaction_timeout,
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
