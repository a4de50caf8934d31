"""Which kind of step runs a service, and what every kind of step can do."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.graph.signature import is_async
from penstock.core.status.eventtimes import EventTimes
from penstock.core.wiring.panes import rollup_of
from penstock.services.state.committed import Readable
from penstock.services.state.machine import MachineState
from penstock.services.state.notes import Notes
from penstock.services.state.panes import PaneState
from penstock.services.state.states import StateCopy
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.concurrent import AsyncStep
from penstock.services.step.operators import OperatorStep
from penstock.services.step.outputs import Send
from penstock.services.step.panes import PaneStep, shown
from penstock.services.step.reactions import Hold
from penstock.services.step.retries import Retries
from penstock.services.step.step import Clock, Step
from penstock.services.step.tally import Tally

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["ChangelogState", "Stepper", "make_copy", "make_step"]


class ChangelogState(Protocol):
    """What a step remembers, as its changelog knows it."""

    @property
    def notes(self) -> Notes:
        """What the task keeps beside it, in the same commits."""

    def __len__(self) -> int:
        """Return how many values are held."""

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """Return a changelog record for everything that changed since the last commit."""

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""

    @property
    def readable(self) -> Mapping[str, Readable]:
        """The states by name, for a cut to read."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The topics of tables that some of it is restored from, rather than the changelog."""

    def taking(self, table: str) -> Callable[[bytes, bytes | None], None]:
        """Return what takes in the records of such a table."""

    def resume(self) -> Mapping[str, int]:
        """Begin with what the shelf has; return where each log is to be read on, by topic.

        A log that is not there is to be read from its start.
        """

    def begin(self) -> None:
        """Hear that all of the changelog was taken in."""

    def restored(self, positions: Mapping[str, int]) -> None:
        """Hear that everything before an offset of each log was taken in."""

    def snapshot(self, positions: Mapping[str, int]) -> None:
        """Hear where logs end before the next commit: what the shelf has by then."""


class Stepper(Protocol):
    """Handles the records of one task; all calls come from one thread, in between of each other.

    Whatever ``send`` raises goes through: the task is thrown away then. A step that runs a user's
    code stops soon after its ``deadline``, by the monotonic clock, and leaves the rest.
    """

    deadline: float

    @property
    def retries(self) -> Retries:
        """What failed and waits to be tried again."""

    @property
    def states(self) -> ChangelogState:
        """What goes to the changelog and comes back from it."""

    @property
    def tally(self) -> Tally:
        """What became of the records."""

    def facts(self) -> dict[str, int]:
        """Return further numbers to show: how many keys, timers and the like there are."""

    def event_times(self) -> EventTimes:
        """Return how far event time has come, where the step waits for it; any thread may ask."""

    @property
    def last_dead_letter(self) -> str:
        """The last dead letter in words, empty where there was none."""

    def open(self, number: int) -> None:
        """Begin: the state of this partition number is restored, no record was handled yet."""

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic in order, passing what they give to ``send``.

        A record that is to be tried again later is returned, or the one at which the time was up;
        those behind it were not handled.
        """

    def wakes_at(self) -> datetime | None:
        """Return when :meth:`tick` has something to do by the clock; None: nothing waits."""

    def tick(self, send: Send) -> bool:
        """Do what the clock and the event time make due now; True: something was sent or changed.

        Called when :meth:`wakes_at` is reached, never while a commit is under way.
        """

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""

    def close(self) -> None:
        """End; nothing is handled any more."""


def make_step(
    graph: Graph,
    service: Service,
    *,
    clock: Clock,
    waits: Callable[[str], bool],
    shelf: "Shelf | None" = None,
    tables: WholeTables | None = None,
) -> Stepper:
    """Return what handles the records of one task of a service.

    Its state is on the ``shelf``, where there is one. ``tables`` are its broadcast tables.
    ``waits`` says of a topic whether records of it wait to be handled.
    """

    def behind() -> bool:
        return any(waits(data.topic.name) for data in service.reads)

    if service.aggregation is not None:
        return PaneStep(graph, service, clock=clock, shelf=shelf, behind=behind)
    if service.operator is not None:
        return OperatorStep(graph, service, clock=clock, shelf=shelf, tables=tables, behind=behind)
    kind = AsyncStep if is_async(service.function) else Step
    return kind(graph, service, clock=clock, shelf=shelf, waits=waits, tables=tables)


def make_copy(graph: Graph, service: Service, *, clock: Clock, shelf: "Shelf") -> ChangelogState:
    """Return what puts the changelog of a task that another worker has on a shelf."""
    if service.aggregation is not None:
        return PaneState(shelf, results=shown(rollup_of(service)))
    if service.operator is not None:
        return MachineState(shelf)
    changelog = graph.changelog(service).name
    timers = None
    if service.timed:
        timers = TimerQueue(TaskEventTime(service.reads), clock=clock, shelf=shelf)
    return StateCopy(service.states, changelog=changelog, clock=clock, timers=timers, shelf=shelf)
