"""Taking over a share of a service: fence its former owner, then restore its state.

The order makes it right. Once the former owner is fenced nobody else can add to the changelog; so
the mark that is written then is its end, and everything before it is the state. The end is never
guessed: a changelog may be empty, compacted, or end in what transactions leave behind. One that was
trimmed past what the disk has is no state: the share is refused, for only the input can rebuild it.

The offsets come from the group. They are those of the same commit as the state: the group gives
them out when no transaction is moving them, and takes no more from who is not its member. So the
fencing comes before the question for them: it ends a transaction that a dead worker left open. The
state has kept them too: offsets that the group has forgotten come from there, and others than those
of the state are refused.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import uuid4

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.backoff import Backoff
from penstock.core.status.estimate import Estimate
from penstock.core.units import span_text
from penstock.errors import ConfigurationError, TransientError
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.positions import Input
from penstock.services.usererrors import LOG
from penstock.services.worker.task import Delivery, Task

__all__ = ["BACKOFF", "MarkingDelivery", "Takeover", "TaskFactory"]

BACKOFF = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))
"""The waits between two attempts to take over a share, and between two of a worker."""


class MarkingDelivery(Delivery, Protocol):
    """A delivery that can also write a mark, and whose making fences the former owner."""

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Write one record, durable when the call returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFactory:
    """What the tasks of one service stand on."""

    connection: Connection
    changelog: str | None
    """None: the service keeps no state."""
    deliver: Callable[[str], MarkingDelivery]
    """Makes the delivery of a share, which fences its former owner."""
    make_task: Callable[[Offsets, Delivery], Task]
    """Makes the task that begins at these offsets."""


@contextmanager
def _whole_changelog() -> Iterator[None]:
    """Say of a changelog that lacks its beginning what that means for the state."""
    try:
        yield
    except ConfigurationError as error:
        if error.code != "offset.trimmed":
            raise
        raise ConfigurationError(
            f"the state cannot be restored: {error.message}",
            code="state.trimmed",
            detail="changelogs are compacted, never trimmed: somebody deleted what is missing",
            hint="penstock reset rebuilds the state from the input, and writes the outputs again",
        ) from error


class Takeover:
    """Brings one task up, in a thread of its own, trying again for as long as it is wanted.

    ``unread`` are the partitions that the group has no offset for.
    ``former`` is a task of ours that failed; it is closed first. ``delivery`` has fenced the former
    owner already; without it the first thing done is that. FencedError: somebody else has the
    share. That and what will not pass is raised.
    """

    def __init__(
        self,
        ground: TaskFactory,
        share: str,
        *,
        starts: Offsets,
        unread: Collection[Partition] = (),
        delivery: MarkingDelivery | None = None,
        former: Task | None = None,
        trouble: str = "",
    ) -> None:
        self.share = share
        self.starts = dict(starts)
        self._unread = frozenset(unread)
        self.trouble = trouble
        self._ground = ground
        self._former = former
        self._delivery = delivery
        self._cancelled = threading.Event()
        self._estimate = Estimate()

    @property
    def restored(self) -> int:
        """Return how many records of the changelog were read."""
        return self._estimate.done

    @property
    def expected(self) -> int:
        """Return how many there are to read; 0 while that is not known."""
        return self._estimate.total

    @property
    def progress(self) -> str:
        """Return how much of the state is restored, and how long the rest will take, in words."""
        if not self.expected:
            return "0%"
        done = f"{100 * self.restored // self.expected}%"
        left = self.seconds_left
        return done if left is None else f"{done}, about {span_text(left)} left"

    @property
    def seconds_left(self) -> float | None:
        """Return how long the rest will take, by how fast it went lately; None: not known."""
        return self._estimate.seconds_left if self.expected else None

    def follow(self, restored: int, *, of: int, at: float | None = None) -> None:
        """Take note of how far the restore has come, at a second of the clock that only goes on."""
        self._estimate.take(time.monotonic() if at is None else at, restored, of)

    def cancel(self) -> None:
        """Make :meth:`run` end soon; allowed at any moment, from any thread."""
        self._cancelled.set()

    def run(self) -> Task | None:
        """Return the task, ready to go on; None if it is no longer wanted."""
        if self._former is not None:
            self._former.close()
            self._former = None
        for delay in BACKOFF.delays():
            if self._cancelled.is_set():
                break
            try:
                return self._attempt()
            except TransientError as error:
                if error.message != self.trouble:
                    LOG.warning("share %s is not up yet: %s", self.share, error)
                self.trouble = error.message
                self._cancelled.wait(delay)
        if self._delivery is not None:
            self._delivery.close()
        return None

    def _attempt(self) -> Task | None:
        delivery, self._delivery = self._delivery or self._ground.deliver(self.share), None
        try:
            task = self._ground.make_task(self.starts, delivery)
        except BaseException:
            delivery.close()
            raise
        try:
            with _whole_changelog():
                ready = self._ground.changelog is None or self._restore(task, delivery)
        except BaseException:
            task.close()
            raise
        if ready and not self._cancelled.is_set():
            self.trouble = ""
            return task
        task.close()
        return None

    def _restore(self, task: Task, delivery: MarkingDelivery) -> bool:
        """Read the changelog up to a mark of our own; False if cancelled on the way."""
        changelog, mark, number = self._ground.changelog or "", uuid4().bytes, task.number
        delivery.mark(changelog, key=MARKER_KEY, value=mark, partition=number)
        low, high = Topics(self._ground.connection).ends(changelog)[number]
        inputs = self._inputs(number)
        # Compaction leaves the start of a changelog where it is: one that has moved was trimmed.
        low = task.resume(low, high) or 0
        self._estimate = Estimate()
        self.follow(0, of=high - low)
        apply = task.step.states.apply
        for batch in LogReader(self._ground.connection).batches(
            changelog,
            start=Offset(low),
            partitions=[number],
            follow=True,
            stop=self._cancelled,
        ):
            for raw in batch:
                key, value = raw.key(), raw.value()
                if key == MARKER_KEY and value == mark:
                    task.restored((raw.offset() or 0) + 1, complete=True)
                    task.begin_at(inputs, unread=self._unread)
                    LOG.info("share %s restored: %s of %s", self.share, high - low, high)
                    if not raw.offset():
                        self._doubt_empty(changelog)
                    return True
                apply(key or b"", value)
            end = (batch[-1].offset() or 0) + 1
            task.restored(end)  # what is on disk by now need not be read again, come what may
            self.follow(end - low, of=high - low)
        return False

    def _inputs(self, number: int) -> dict[str, Input]:
        """Return the input topics as they are."""
        topics = Topics(self._ground.connection)
        ends = {topic: topics.ends(topic) for topic, _ in self.starts}
        return {
            topic: Input(id=topics.identity(topic), partitions=len(found), low=found[number][0])
            for topic, found in ends.items()
        }

    def _doubt_empty(self, changelog: str) -> None:
        """Say so where a changelog is new and its input was read already.

        Whoever gives state to a service means that; whoever deleted the topic does not.
        """
        topics = Topics(self._ground.connection)
        ends = {topic: topics.ends(topic) for topic, _ in self.starts}
        read = [
            f"{topic}[{number}] up to {offset}"
            for (topic, number), offset in self.starts.items()
            if offset > ends[topic][number][0]
        ]
        if read:
            LOG.warning(
                "%s is new, and %s was read already: the state begins empty here; if that is not"
                " meant, penstock reset rebuilds it from the input",
                changelog,
                ", ".join(read),
            )
