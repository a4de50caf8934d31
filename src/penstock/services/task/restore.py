"""Restores the state of a task from its logs, each up to a position of its own.

A task's own changelog comes first. Its former owner is fenced, so nobody else can add to it: a mark
that is written now is its end, and everything before the mark is the state. The end is never
guessed: a changelog may be empty, compacted, or end in what transactions leave behind. One that was
trimmed past what the disk has is no state: only the input can rebuild it.

Other logs have other writers. A table that the service reads is restored from its own topic, up to
the offset from which the task goes on with it as an input.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from penstock.backbone.client.logrecord import Partition
from penstock.core.status.estimate import Estimate
from penstock.core.units import span_text
from penstock.errors import ConfigurationError
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.positions import Input
from penstock.services.task.servicelog import MarkingDelivery, ServiceLog
from penstock.services.task.task import Task
from penstock.services.usererrors import LOG

__all__ = ["Restore", "Stretch"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a log that a restore reads: from where the disk ends to a mark or an offset."""

    topic: str
    start: int
    end: int
    mark: bytes | None = None
    """The value of the record that ends it, for a log that the task alone writes."""

    def __len__(self) -> int:
        """Return how many offsets there are to read."""
        return max(0, self.end - self.start)


class Restore:
    """Restores one task, and says how far it has come; any thread may ask for that."""

    def __init__(self, log: ServiceLog) -> None:
        self._log = log
        self._estimate = Estimate()
        self._done = 0

    @property
    def restored(self) -> int:
        """Return how many records were read."""
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
        """Take note of how far the restore has come, at a second of the monotonic clock."""
        self._estimate.take(monotonic() if at is None else at, restored, of)

    def run(
        self,
        task: Task,
        delivery: MarkingDelivery,
        *,
        inputs: Mapping[str, Input],
        unread: Collection[Partition],
        stop: threading.Event,
    ) -> bool:
        """Restore a task and tell it where it goes on; False if ``stop`` was set on the way.

        ``unread`` are the partitions that the group has no offset for.
        """
        changelog, number, mark = task.logs[0], task.number, uuid4().bytes
        self._estimate, self._done = Estimate(), 0
        delivery.mark(changelog, key=MARKER_KEY, value=mark, partition=number)
        ends = {topic: self._log.ends(topic)[number] for topic in task.logs}
        starts = task.resume(ends)
        # Compaction leaves the start of a changelog where it is: one that has moved was trimmed.
        own = Stretch(changelog, starts.get(changelog, 0), ends[changelog][1], mark)
        with _whole_changelog():
            if not self._read(task, own, stop):
                return False
        task.begin_at(inputs, unread=unread)
        for topic in task.logs[1:]:
            low, high = ends[topic]
            end = task.positions.get((topic, number), high)
            if not self._read(task, Stretch(topic, starts.get(topic, low), end), stop):
                return False
        total = sum(high for _, high in ends.values())
        LOG.info("task %s restored: %s of %s", number, self._done, total)
        return True

    def _read(self, task: Task, stretch: Stretch, stop: threading.Event) -> bool:
        """Give the task the records of a stretch; False if ``stop`` was set on the way."""
        topic, number, mark, read = stretch.topic, task.number, stretch.mark, self._done
        expected, apply = read + len(stretch), task.taking(topic)
        self.follow(read, of=expected)
        if mark is None and not stretch:
            task.restored(topic, stretch.end, complete=True)
            return True
        for batch in self._log.batches(
            topic,
            starts={number: stretch.start},
            ends=None if mark is not None else {number: stretch.end},
            stop=stop,
        ):
            for raw in batch:
                key, value = raw.key(), raw.value()
                if mark is not None and key == MARKER_KEY and value == mark:
                    task.restored(topic, (raw.offset() or 0) + 1, complete=True)
                    self._done = expected
                    if not raw.offset():
                        self._doubt_empty(task, topic)
                    return True
                apply(key or b"", value)
            end = (batch[-1].offset() or 0) + 1
            task.restored(topic, end)  # what is on disk by now need not be read again
            self.follow(read + end - stretch.start, of=expected)
        self._done = expected
        if mark is not None or stop.is_set():
            return False
        task.restored(topic, stretch.end, complete=True)
        return True

    def _doubt_empty(self, task: Task, changelog: str) -> None:
        """Say so where a changelog is new and its input was read already.

        Whoever gives state to a service means that; whoever deleted the topic does not.
        """
        starts = task.positions.items()
        ends = {topic: self._log.ends(topic) for (topic, _), _ in starts}
        read = [
            f"{topic}[{number}] up to {offset}"
            for (topic, number), offset in starts
            if offset > ends[topic][number][0]
        ]
        if read:
            LOG.warning(
                "%s is new, and %s was read already: the state begins empty here; if that is not"
                " meant, penstock reset rebuilds it from the input",
                changelog,
                ", ".join(read),
            )


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
