"""The services of an application, on a log in memory: one thread, no clock, no waiting."""

from collections.abc import Callable
from datetime import datetime

from penstock.backbone.client.logrecord import Partition
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.status.report import Counts
from penstock.errors import DefinitionError, Problem
from penstock.services.step.step import Clock
from penstock.services.step.tally import total
from penstock.services.task.factory import Shelves, TaskFactory
from penstock.services.task.takeover import Takeover
from penstock.services.task.task import Task
from penstock.testing.followed import MemoryFollowed
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

__all__ = ["MAX_ROUNDS", "MemoryEngine"]

MAX_ROUNDS = 1000
"""How often records may go round a cycle before it is taken for endless."""


class MemoryEngine:
    """Runs, kills and restarts services. A service that is down has no tasks.

    ``at`` is called at each step: ``poll``, ``handled``, ``send``, ``commit``, ``committed`` (which
    the task does not know yet), ``restore``. If it raises, the process has died: call
    :meth:`crash` next. ``disk`` says where the state of a service is, if it is not in memory.
    """

    def __init__(
        self,
        graph: Graph,
        log: MemoryLog,
        *,
        clock: Clock,
        auto_commit: bool,
        at: Callable[[str], None] = lambda _: None,
        disk: Callable[[Service], Shelves | None] = lambda _: None,
    ) -> None:
        self._at = at
        self._disk = disk
        self._graph = graph
        self._log = log
        self._clock = clock
        self._auto_commit = auto_commit
        self._services = {part.name: part for part in graph.parts if isinstance(part, Service)}
        self._tasks: dict[str, list[Task]] = {}
        self._followed: dict[str, MemoryFollowed] = {}
        self._past: dict[str, Counts] = {}

    def restart(self) -> None:
        """Start every service that is down, from its changelog and its committed offsets."""
        for name, service in self._services.items():
            if name not in self._tasks:
                self._tasks[name] = self._start(service)

    def crash(self, service: Service | None) -> None:
        """Kill a service, or all: what they did not commit is lost."""
        for name, tasks in self._chosen(service).items():
            self._take_down(name, tasks)

    def stop(self, service: Service | None) -> None:
        """Stop a service, or all, cleanly: they commit first."""
        for name, tasks in self._chosen(service).items():
            for task in tasks:
                task.commit()
                task.step.close()
            self._take_down(name, tasks)

    def _take_down(self, name: str, tasks: list[Task]) -> None:
        for task in tasks:
            task.close()
        self._past[name] = self.counts(self._services[name])
        del self._tasks[name], self._followed[name]

    def commit(self, service: Service | None) -> None:
        """Let a service, or each in turn, commit what it has processed."""
        for tasks in self._chosen(service).values():
            for task in tasks:
                task.commit()

    def flow(self) -> None:
        """Let records flow through the services until nothing moves."""
        for _ in range(MAX_ROUNDS):
            for followed in self._followed.values():
                followed.catch_up()
            moved = [name for name, tasks in self._tasks.items() if self._round(tasks)]
            if not moved:
                return
        text = f"records still go round after {MAX_ROUNDS} rounds: {', '.join(moved)}"
        hint = "let the cycle come to an end, or pipe less into it"
        raise DefinitionError((Problem("driver.endless", text, hint),))

    def wakes_at(self) -> datetime | None:
        """Return when something is due next by the clock; None: nothing is."""
        running = (task for tasks in self._tasks.values() for task in tasks)
        return min((wake for task in running if (wake := task.wakes_at())), default=None)

    def advance(self, event_time_at: datetime) -> None:
        """Move the event time of every running service."""
        for tasks in self._tasks.values():
            for task in tasks:
                task.advance(event_time_at)

    def running(self, service: Service) -> list[Task]:
        """Return the tasks of a service; LookupError if it is unknown or down."""
        if service.name not in self._services:
            raise LookupError(f"there is no service {service.name!r} in {self._graph.app!r}")
        if service.name not in self._tasks:
            raise LookupError(f"the service {service.name!r} is down: restart() first")
        return self._tasks[service.name]

    def counts(self, service: Service) -> Counts:
        """Return what became of the records of a service, all its runs together."""
        tasks = self._tasks.get(service.name, [])
        past = self._past.get(service.name, Counts())
        return total(past, *(task.step.tally.counts() for task in tasks))

    def _chosen(self, service: Service | None) -> dict[str, list[Task]]:
        return dict(self._tasks) if service is None else {service.name: self.running(service)}

    def _round(self, tasks: list[Task]) -> bool:
        moved = False
        for task in tasks:
            task.release()
            for partition in list(task.positions):
                if partition in task.holds:
                    continue
                if records := self._log.read(partition, task.next_offset(partition)):
                    self._at("poll")
                    task.handle(partition, records)
                    self._at("handled")
                    moved = True
            moved |= task.tick()
            if self._auto_commit:
                task.commit()
        return moved

    def _start(self, service: Service) -> list[Task]:
        """Bring the tasks of a service up as a worker does, one after another."""
        log = MemoryServiceLog(self._graph, service, self._log, at=self._at)
        followed = self._followed[service.name] = MemoryFollowed(service, self._log)
        followed.catch_up()
        factory = TaskFactory(
            self._graph,
            service,
            log,
            clock=self._clock,
            disk=self._disk(service),
            followed=followed,
        )
        committed = self._log.committed(f"{self._graph.app}.{service.name}")
        starts: dict[str, dict[Partition, int]] = {}
        for data in service.reads:
            for partition in self._log.partitions(data.topic.name):
                inputs = starts.setdefault(factory.name(partition), {})
                inputs[partition] = committed.get(partition, 0)
        return [
            self._taken_over(
                Takeover(factory, name, starts=offsets, unread=offsets.keys() - committed.keys())
            )
            for name, offsets in starts.items()
        ]

    def _taken_over(self, takeover: Takeover) -> Task:
        if (task := takeover.run()) is None:
            raise RuntimeError(f"task {takeover.task} was given up while it was restored")
        task.open()
        return task
