"""The local disk of a worker: the state of its tasks, and copies of what other workers have."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import TransientError
from penstock.services.state.codec import spec_identity
from penstock.services.state.committed import Committed
from penstock.services.step.factory import make_copy
from penstock.services.task.servicelog import ServiceLog
from penstock.services.task.task import Task

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf
    from penstock.services.task.standby import Copied, Standby

__all__ = ["Disk"]


class Disk:
    """Opens the shelves of tasks, and tells them how far their changelogs are.

    Where state is in memory there is nothing to do, and every method does just that. RocksDB is
    imported when it is first needed: most workers do without.
    """

    def __init__(self, graph: Graph, service: Service, site: Site, *, log: ServiceLog) -> None:
        settings = site.settings.services
        self.used = settings.state == "disk" and service.keeps_state
        """Whether state is here, rather than in memory."""
        self._copies = self.used and settings.standby == "on"
        own = settings.state_dir
        self._directory = (Path(own) if own else site.places.state) / f"{graph.app}.{service.name}"
        self._graph = graph
        self._service = service
        self._changelog = graph.changelog(service)
        timed = ("timers",) if service.timed else ()
        self._types = "\n".join((*map(spec_identity, service.states), *timed))
        self._log = log
        self._standby: Standby | None = None

    def start(self) -> None:
        """Begin to keep copies of what others have, where that is wanted."""
        if self._copies:
            from penstock.services.task.standby import Standby

            name = self._changelog.name
            self._standby = Standby(self._log, name, open_copy=self._copy)

    def close(self) -> None:
        """Let go of the copies."""
        if self._standby is not None:
            self._standby.close()

    def shelf(self, number: int) -> "Shelf | None":
        """Open the state of a task that is to run here; None: it is in memory."""
        if not self.used:
            return None
        if self._standby is not None:
            self._standby.give(number)
        from penstock.services.state.shelf import open_shelf

        return open_shelf(self._directory / str(number), identity=self._identity())

    def copy_others(self, ours: Iterable[int]) -> None:
        """Keep copies of all tasks but ours."""
        if self._standby is not None:
            from penstock.services.state.shelf import claimed

            others = set(range(self._changelog.partitions)) - set(ours)
            # What another worker of this host is about to run is given up: the copy is its own.
            self._standby.keep(
                {number for number in others if not claimed(self._directory / str(number))}
            )

    def copies(self) -> tuple[int, int]:
        """Return how many copies are kept, and how many records were read for them by now."""
        return (0, 0) if self._standby is None else (self._standby.copies, self._standby.records)

    def snapshot(self, tasks: Iterable[Task]) -> None:
        """Tell tasks where their changelogs end, so that their shelves know their place."""
        for task, end in self._ends(tasks):
            task.snapshot(end)

    def save_positions(self, tasks: Iterable[Task]) -> None:
        """Let shelves know their place, all being committed: the next start reads no more."""
        for task, end in self._ends(tasks):
            if not task.dirty:
                task.restored(self._changelog.name, end, complete=True)

    def reading(self, number: int) -> Committed | None:
        """Return what is read of the copy of a task that another has; None: there is none."""
        return None if self._standby is None else self._standby.reading(number)

    def _copy(self, number: int) -> "Copied | None":
        """Open the copy of a task, and what takes its changelog; None where another has it."""
        from penstock.services.state.shelf import open_copy
        from penstock.services.task.standby import Copied

        shelf = open_copy(self._directory / str(number), identity=self._identity())
        if shelf is None:
            return None
        kept = make_copy(self._graph, self._service, clock=_now, shelf=shelf)
        return Copied(shelf, kept, tuple(data.topic.name for data in self._service.reads))

    def _identity(self) -> str:
        return f"{self._log.identity(self._changelog.name)}\n{self._types}"

    def _ends(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, int]]:
        shelved = [task for task in tasks if task.shelf is not None]
        if not shelved:
            return
        try:
            ends = self._log.ends(self._changelog.name)
        except TransientError:  # asked again before long
            return
        for task in shelved:
            yield task, ends[task.number][1]


def _now() -> datetime:
    return datetime.now(UTC)
