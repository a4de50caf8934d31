"""Joins and aggregations of tables on their machines: declared, cut into moments, restarted."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from penstock import App, EventTime, record
from penstock.core.graph.parts import Service
from penstock.core.operators.operator import Arrival, MachineOutput
from penstock.core.panes.store import MemoryStore
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.core.wiring.operators import plan_of, written_by

_GOES_ON, _RESTARTS = 0.5, 0.2


@record(key="key", time="at")
class Row:
    """A row of any stream or table; its time is in milliseconds."""

    key: str
    at: int
    value: int
    points: str | None = None


def app_of() -> tuple[App, EventTime, type[Row]]:
    """Return an application, an event time that is the newest of all, and the type of rows."""
    return App("app"), EventTime(follows="newest", idle_after=None), Row


def streams(**event_time: Any) -> tuple[App, Any, Any]:
    """Return two streams; event time is the newest of both, without a delay."""
    app = App("app")
    time = EventTime(**{"follows": "newest", "idle_after": None, **event_time})
    return app, *(app.stream(name, Row, event_time=time) for name in ("left", "right"))


def tables(**options: Any) -> tuple[App, Any, Any]:
    """Return two tables."""
    app = App("app")
    return app, app.table("left", Row, **options), app.table("right", Row, **options)


def span(milliseconds: int) -> timedelta:
    """Return a span."""
    return timedelta(milliseconds=milliseconds)


def arrival(number: int, key: str, at: int, value: int | None, offset: int = 0) -> Arrival:
    """Return a row on its way into a machine; of the value None, a deletion."""
    row = None if value is None else Row(key, at, value)
    return Arrival(number, key.encode(), row, at * 1000, "0", offset)


class Run:
    """A machine in memory; ``cuts`` says after how many arrivals a moment ends, and restarts."""

    def __init__(self, operator: Any, shape: Any = "stream") -> None:
        plan = operator.plan()
        assert not isinstance(plan, list), plan
        self.plan = plan
        self.store = MemoryStore()
        self.record = plan.result("results", shape)
        self.given = MachineOutput()
        self.restart()

    def restart(self) -> None:
        """Begin anew from the store."""
        self.machine = self.plan.machine(self.store, self.record, broadcasts={})

    def take(self, arrivals: Sequence[Arrival], *, limit: int | None = None) -> None:
        """Take one moment, and all that is due."""
        self._keep(self.machine.take(arrivals, clock=0, limit=limit))
        while self.machine.pending:
            self._keep(self.machine.more(limit))

    def take_cut(self, arrivals: Sequence[Arrival], cuts: Sequence[int]) -> None:
        """Take arrivals in moments of these sizes; a negative one restarts behind it."""
        left = list(arrivals)
        for cut in cuts:
            moment, left = left[: abs(cut)], left[abs(cut) :]
            self.take(moment, limit=abs(cut))
            if cut < 0:
                self.machine.flush()
                self.restart()
            else:
                self.machine.flush()
                self.machine.trim(0)
        self.take(left)

    def finish(self) -> MachineOutput:
        """Come to the end of the input."""
        self._keep(self.machine.finish())
        while self.machine.pending:
            self._keep(self.machine.more())
        return self.given

    def standing(self) -> Counter[tuple[Any, ...]]:
        """Return the results that stand: those that were not withdrawn."""
        found: Counter[tuple[Any, ...]] = Counter()
        for result in self.given.results:
            found[shown(result.record)] += 1 if result.change == "add" else -1
        assert min(found.values(), default=0) >= 0, "withdrawn, but never given"
        return +found

    def table(self) -> dict[bytes, Any]:
        """Return the rows of the result."""
        rows: dict[bytes, Any] = {}
        for result in self.given.results:
            if result.change == "delete":
                rows.pop(result.key or b"", None)
            else:
                rows[result.record.key.encode()] = result.record
        return rows

    def _keep(self, given: MachineOutput) -> None:
        self.given.results += given.results
        self.given.late += given.late
        self.given.refused += given.refused
        self.given.dropped += given.dropped


class Chain:
    """All operators of an application, each with a queue for each of its inputs.

    With a random generator one queue or another goes on first, and parts restart in between.
    """

    def __init__(self, app: App, random: Any = None) -> None:
        self._random = random
        self._graph = verified(app.graph)
        self._parts = [_Part(each) for each in self._graph.parts if isinstance(each, Service)]
        self._ends: Counter[str] = Counter()
        self._results: dict[str, list[Any]] = {}

    def feed(self, name: str, given: Arrival) -> None:
        """Put a record into a stream or table."""
        self._put(name, given)
        if self._random is not None and self._random.random() < _GOES_ON:
            self._step()

    def _put(self, name: str, given: Arrival) -> None:
        for part in self._parts:
            for number, each in enumerate(part.plan.inputs):
                if each.name == name:
                    part.queues[number].append(given._replace(input=number))

    def settle(self) -> None:
        """Go on until every queue is empty."""
        while self._step():
            pass

    def table(self, data: Any) -> dict[bytes, Any]:
        """Return the rows of a table of results."""
        key_of, rows = JsonCodec(data.record).key, dict[bytes, Any]()
        for result in self._results.get(data.name, ()):
            key = result.key if result.record is None else key_of(result.record)
            rows.pop(key or b"", None)
            if result.change == "add":
                rows[key or b""] = result.record
        return rows

    def store(self, data: Any) -> MemoryStore:
        """Return the store of the part that fills a table."""
        (part,) = (each for each in self._parts if each.writes.name == data.name)
        part.machine.flush()
        return part.store

    def _step(self) -> bool:
        waiting = [(part, queue) for part in self._parts for queue in part.queues if queue]
        if not waiting:
            return False
        part, queue = waiting[0] if self._random is None else self._random.choice(waiting)
        count = len(queue) if self._random is None else self._random.randint(1, len(queue))
        came, queue[:] = queue[:count], queue[count:]
        given = part.machine.take(came, clock=0)
        if self._random is not None and self._random.random() < _RESTARTS:
            part.machine.flush()
            part.restart()
        self._pass_on(part, given)
        return True

    def _pass_on(self, part: "_Part", given: MachineOutput) -> None:
        data = part.writes
        codec = part.codec
        self._results.setdefault(data.name, []).extend(given.results)
        for result in given.results:
            key = result.key if result.record is None else codec.key(result.record)
            row = None if result.record is None else codec.accept(key, codec.encode(result.record))
            offset = self._ends[data.name]
            self._ends[data.name] += 1
            self._put(data.name, Arrival(0, key or b"", row, result.time, "0", offset))


class _Part:
    """One operator."""

    def __init__(self, service: Service) -> None:
        self.plan = plan_of(service)
        self.writes = written_by(service)
        self.codec: JsonCodec[Any] = JsonCodec(self.writes.record)
        self.queues: list[list[Arrival]] = [[] for _ in self.plan.inputs]
        self.store = MemoryStore()
        self.restart()

    def restart(self) -> None:
        self.machine = self.plan.machine(self.store, self.writes.record, broadcasts={})


def shown(result: Any) -> tuple[Any, ...]:
    """Return a pair as values: the rows, and the time."""
    sides = (result.left, result.right)
    return (*((None if row is None else (row.at, row.value)) for row in sides), result.at)
