"""An operator: a computation that is declared as a value, and the machine that does it.

Joins, aggregations of tables, derived streams, patterns and life cycles are operators. Each is
three things: a **declaration**, which the user writes; its **plan**, with expressions read and
types settled; and a **machine**, which is pure. A host runs the machine: a task of a service, the
test driver, a partition of Spark's state store, or a range that is finished. The host decodes
records, keeps the machine's state in a store of bytes, and writes what the machine gives.

What came together is one moment, as for windows. A machine must give the same results however its
input is cut into moments, and after a restart from its store. :class:`OperatorTime
<penstock.core.operators.eventtime.OperatorTime>` says how far event time is over all inputs.

The inputs of a machine have the same keys in the same partitions. An operator that needs other
keys reads another operator (`Inner`), whose results go over a topic of its own: records are
repartitioned there. Broadcast tables are not among the arrivals: the host keeps each of them whole,
once for all its tasks, and gives the machine its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.record import RecordType
from penstock.errors import DataError, Place, Problem

__all__ = [
    "Arrival",
    "Inner",
    "Input",
    "InputKind",
    "LateArrival",
    "Machine",
    "MachineOutput",
    "Operator",
    "Plan",
    "Refused",
    "Result",
    "ResultKind",
    "RowLookup",
    "Shape",
    "is_operator",
]

InputKind = Literal["stream", "table", "broadcast"]
"""How an input is read: record by record, as rows that replace each other, or whole everywhere."""

Shape = Literal["stream", "table"]
"""What takes the results."""

ResultKind = Literal["add", "withdraw", "delete"]
"""What a result does: it is new, takes an earlier one back, or deletes the row of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One stream or table that an operator reads; its number is its place among the inputs."""

    name: str
    topic: str
    kind: InputKind
    record: RecordType[Any]
    max_record_bytes: int
    rule: WatermarkRule | None = None
    """How event time follows its records; None: it does not."""
    sources: tuple[str, ...] = ()
    """Sources that are known to come: event time waits for each of them from the beginning."""


class Arrival(NamedTuple):
    """A record on its way into a machine."""

    input: int
    key: bytes
    """The key on the log; empty where it has none."""
    record: Any
    """None: of a table, the row of the key was deleted; of a stream, only the time counts."""
    time: int
    """The event time in microseconds; that of the log where the record has none."""
    source: str
    """Whose event time it moves: a partition of the topic, or of what was repartitioned into it."""
    offset: int
    partition: int = 0


class Result(NamedTuple):
    """A record on its way out of a machine."""

    change: ResultKind
    record: Any
    """Of the type that the plan gives; of a deletion the key fields suffice."""
    time: int
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None
    """The key on the log of a deletion that has no record."""


class LateArrival(NamedTuple):
    """A record that came too late, or with a time that is not believed, for the late ledger."""

    arrival: Arrival
    reason: Literal["expired", "closed", "ahead"]
    late_by: int
    """In microseconds; negative: how far its time is ahead of the clock."""


class Refused(NamedTuple):
    """A record that an expression cannot be computed for: it becomes a dead letter."""

    arrival: Arrival
    error: DataError


@dataclass(slots=True)
class MachineOutput:
    """What a machine gave in one moment, in the order in which it is to be written."""

    watermark: int = BEGINNING
    newest: int | None = None
    """The newest event time that was ever seen."""
    results: list[Result] = field(default_factory=list)
    late: list[LateArrival] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    dropped: int = 0
    """How many records were dropped on purpose, as the declaration says; no marks of time."""
    counts: dict[str, int] = field(default_factory=dict)
    """Further facts to add up, by their names in words."""


class RowLookup(Protocol):
    """The rows of a broadcast table as they are now."""

    def get(self, key: bytes) -> Any | None:
        """Return the row of a key on the log, or None."""


class Machine(Protocol):
    """Does the work of one operator for one task. Its store says all there is to know of it.

    It never reads a clock: the host passes the clock in microseconds. What it has looked at may
    stay in memory until ``trim``.
    """

    @property
    def watermark(self) -> int:
        """How far event time has come."""

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""

    @property
    def pending(self) -> bool:
        """Whether results are due that ``more`` has not given yet."""

    def take(
        self, arrivals: Sequence[Arrival], *, clock: int, limit: int | None = None
    ) -> MachineOutput:
        """Take what came in one moment, in this order, then give about ``limit`` of what is due.

        Call ``more`` until nothing is pending before the next moment is taken. A DataError that a
        record makes an expression raise is among ``refused``; the others are taken.
        """

    def more(self, limit: int | None = None) -> MachineOutput:
        """Go on with what is due, about so many keys."""

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let the clock move; ``event_time`` is an event time, as if each source had shown it."""

    def finish(self) -> MachineOutput:
        """Give everything that waits for event time: the input is at its end."""

    def wakes(self) -> int | None:
        """Return the clock from which on there is work without arrivals; None: never."""

    def flush(self) -> None:
        """Write what changed to the store."""

    def trim(self, most: int) -> None:
        """Forget what is in the store already, where more than so many keys are in memory."""


class Plan(Protocol):
    """A declaration made ready: expressions read, types settled. Plain values that can travel."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""

    @property
    def stateful(self) -> bool:
        """Whether it remembers anything; then its inputs need keys, in the same partitions."""

    def result(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of its results, for a stream or table of this name."""

    def machine(
        self, store: Store, record: RecordType[Any], *, broadcasts: Mapping[str, RowLookup]
    ) -> Machine:
        """Return what does the work, with its state in a store; its results are of this type.

        ``broadcasts`` has the rows of every input of the kind ``broadcast``, by its name.
        """

    def finished(self) -> Plan:
        """Return the same over a range that is finished: only final results, each once."""

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes, aspect by aspect: state of another one means nothing to it."""

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds and for how long, in sentences, for `penstock explain`."""


@dataclass(frozen=True, slots=True)
class Inner:
    """An operator whose results another one reads, on a topic of their own.

    ``app.stream`` and ``app.table`` declare it before what reads it, under the name of the outer
    result with a suffix: ``paid.by_customer``.
    """

    suffix: str
    operator: Operator
    shape: Shape = "stream"


@runtime_checkable
class Operator(Protocol):
    """A declared computation; ``app.stream`` and ``app.table`` take it in place of a record type.

    It is a frozen value, and equal ones compute the same.
    """

    @property
    def place(self) -> Place | None:
        """Where it was declared."""

    @property
    def kind(self) -> str:
        """What it is in a word or two, as people read it: ``join``, ``pattern``."""

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads: declared streams and tables, or `Inner`, in the order of the inputs."""

    def reading(self, data: Sequence[Any]) -> Operator:
        """Return the same operator over these streams and tables, one for each of ``reads``."""

    def plan(self) -> Plan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""


def is_operator(given: object) -> bool:
    """Return whether something is an operator, rather than a record type or anything else."""
    return not isinstance(given, type) and isinstance(given, Operator)
