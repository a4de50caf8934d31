"""Taking over a task of a service: fence its former owner, then restore its state.

The order makes it right. Once the former owner is fenced nobody else can add to the changelog, so
its end is known (see :mod:`penstock.services.task.restore`).

The offsets come from the group. They are those of the same commit as the state: the group gives
them out when no transaction is moving them, and takes no more from who is not its member. So the
fencing comes before the question for them: it ends a transaction that a dead worker left open. The
state has kept them too: offsets that the group has forgotten come from there, and others than those
of the state are refused.
"""

import threading
from collections.abc import Collection
from datetime import timedelta

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.backoff import Backoff
from penstock.errors import TransientError
from penstock.services.task.factory import TaskFactory
from penstock.services.task.restore import Restore
from penstock.services.task.servicelog import MarkingDelivery
from penstock.services.task.task import Task
from penstock.services.usererrors import LOG

__all__ = ["BACKOFF", "Takeover"]

BACKOFF = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))
"""The waits between two attempts to take over a task, and between two of a worker."""


class Takeover:
    """Brings one task up, in a thread of its own, trying again for as long as it is wanted.

    ``unread`` are the partitions that the group has no offset for.
    ``former`` is a task of ours that failed; it is closed first. ``delivery`` has fenced the former
    owner already; without it the first thing done is that. FencedError: another worker has the
    task. That and what will not pass is raised.
    """

    def __init__(
        self,
        factory: TaskFactory,
        task: str,
        *,
        starts: Offsets,
        unread: Collection[Partition] = (),
        delivery: MarkingDelivery | None = None,
        former: Task | None = None,
        trouble: str = "",
    ) -> None:
        self.task = task
        """The name of the task."""
        self.starts = dict(starts)
        self.trouble = trouble
        """Why it is not up yet; empty: nothing has failed."""
        self.restore = Restore(factory.log)
        self._unread = frozenset(unread)
        self._factory = factory
        self._former = former
        self._delivery = delivery
        self._cancelled = threading.Event()

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
            if not self._factory.wait_for_tables(self._cancelled):
                break
            try:
                return self._attempt()
            except TransientError as error:
                if error.message != self.trouble:
                    LOG.warning("task %s is not up yet: %s", self.task, error)
                self.trouble = error.message
                self._cancelled.wait(delay)
        if self._delivery is not None:
            self._delivery.close()
        return None

    def _attempt(self) -> Task | None:
        delivery, self._delivery = self._delivery or self._factory.deliver(self.task), None
        try:
            task = self._factory.make(self.starts, delivery)
        except BaseException:
            delivery.close()
            raise
        try:
            ready = not task.logs or self._restore(task, delivery)
        except BaseException:
            task.close()
            raise
        if ready and not self._cancelled.is_set():
            self.trouble = ""
            return task
        task.close()
        return None

    def _restore(self, task: Task, delivery: MarkingDelivery) -> bool:
        return self.restore.run(
            task,
            delivery,
            inputs=self._factory.inputs(self.starts),
            unread=self._unread,
            stop=self._cancelled,
        )
