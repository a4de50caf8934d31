"""Makes the tasks of one service, each with its delivery and where its state is."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.services.state.positions import Input
from penstock.services.step.step import Clock
from penstock.services.task.following import Followed
from penstock.services.task.servicelog import MarkingDelivery, ServiceLog
from penstock.services.task.task import Delivery, Task, task_name

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["Shelves", "TaskFactory"]


def _now() -> datetime:
    return datetime.now(UTC)


class Shelves(Protocol):
    """Opens the shelves that the states of tasks are on."""

    def shelf(self, number: int) -> "Shelf | None":
        """Open the state of a task that is to run here; None: it is in memory."""


class TaskFactory:
    """Makes the tasks of one service on one log; any thread may ask for one.

    Their state is on the ``disk``, where there is one; ``followed`` are their broadcast tables.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        log: ServiceLog,
        *,
        clock: Clock = _now,
        disk: Shelves | None = None,
        followed: Followed | None = None,
    ) -> None:
        self.log = log
        self._graph = graph
        self._service = service
        self._clock = clock
        self._disk = disk
        self._followed = followed

    def name(self, partition: Partition) -> str:
        """Return the name of the task that a partition belongs to."""
        return task_name(self._service, partition)

    def deliver(self, task: str) -> MarkingDelivery:
        """Make the delivery of a task, which fences its former owner."""
        return self.log.deliver(task)

    def wait_for_tables(self, stop: threading.Event) -> bool:
        """Wait until the broadcast tables are whole; False: ``stop`` was set."""
        return self._followed is None or self._followed.wait(stop)

    def make(self, starts: Offsets, delivery: Delivery) -> Task:
        """Make the task that begins at these offsets; its state is not restored yet."""
        number = min(number for _, number in starts)
        return Task(
            self._graph,
            self._service,
            number=number,
            starts=starts,
            delivery=delivery,
            clock=self._clock,
            shelf=None if self._disk is None else self._disk.shelf(number),
            at_end=self.log.at_end,
            drained=self.log.drained,
            tables=None if self._followed is None else self._followed.tables,
        )

    def inputs(self, starts: Offsets) -> Mapping[str, Input]:
        """Return the input topics of a task as they are."""
        found: dict[str, Input] = {}
        for topic, number in starts:
            ends = self.log.ends(topic)
            found[topic] = Input(
                id=self.log.identity(topic), partitions=len(ends), low=ends[number][0]
            )
        return found
