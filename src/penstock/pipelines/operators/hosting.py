"""One machine of an operator over the arrivals of a bucket: records in, records for the log out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.core.instants import instant
from penstock.core.operators.operator import Arrival, Input, Machine, MachineOutput, Plan, Refused
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING
from penstock.core.records.codec import JsonCodec
from penstock.core.rollup.wire import OutgoingRecord
from penstock.core.wiring.results import ResultDestination, Results
from penstock.pipelines.operators.routing import Routed

__all__ = ["AHEAD", "DROPPED", "DUE_KEYS", "LATE", "REFUSED", "Hosted", "Hosting"]

DUE_KEYS = 20_000
"""About so many keys that are due are looked at together."""
LATE, AHEAD, DROPPED, REFUSED = "late_records", "ahead_records", "dropped", "refused"
"""What is counted beside the results."""
_ROWS = b"\x00b"
"""What the records of broadcast tables begin with in the store."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """What an operator's machines are made of; plain values that travel to Spark's tasks."""

    plan: Plan
    to: ResultDestination
    topics: tuple[str, ...]

    def host(self, store: Store) -> "Hosted":
        """Return the machine of one bucket, with its state in a store."""
        return Hosted(self, store)


class _TableRows:
    """A broadcast table in the state of a bucket, which has all of its rows."""

    def __init__(self, store: Store, number: int, accept: Callable[..., Any]) -> None:
        self._store = store
        self._prefix = _ROWS + bytes([number])
        self._accept = accept
        self._known: dict[bytes, Any] = {}

    def get(self, key: bytes) -> Any | None:
        """Return the row of a key on the log, or None."""
        if key not in self._known:
            found = self._store.get(self._prefix + key)
            self._known[key] = None if found is None else self._accept(key, found)
        return self._known[key]

    def put(self, key: bytes, value: bytes | None) -> None:
        """Replace or delete a row."""
        self._known.pop(key, None)
        if value is None:
            self._store.delete(self._prefix + key)
        else:
            self._store.put(self._prefix + key, value)


class Hosted:
    """Takes what came for a bucket, moment by moment, and gives records for the log."""

    def __init__(self, hosting: Hosting, store: Store) -> None:
        plan, self._topics = hosting.plan, hosting.topics
        self._inputs = plan.inputs
        accepts = [
            JsonCodec(each.record, max_bytes=each.max_record_bytes).accept for each in plan.inputs
        ]
        self._accept = accepts
        self._numbers = {
            topic: [number for number, each in enumerate(plan.inputs) if each.topic == topic]
            for topic in hosting.topics
        }
        # A stream that is joined with itself is read once, and each record comes twice.
        self._times = max(map(len, self._numbers.values())) if len(self._numbers) == 1 else 1
        self._tables = {
            each.name: _TableRows(store, number, accepts[number])
            for number, each in enumerate(plan.inputs)
            if each.kind == "broadcast"
        }
        broadcasts: Mapping[str, Any] = self._tables
        self.machine: Machine = plan.machine(store, hosting.to.record, broadcasts=broadcasts)
        self._results = Results(hosting.to)
        self.counts: Counter[str] = Counter()
        self._out: list[OutgoingRecord] = []

    def take(self, came: Sequence[Routed], *, clock: int) -> Iterator[list[OutgoingRecord]]:
        """Yield what one moment gives, in slices; ``came`` is in order.

        Between two slices the machine may be flushed.
        """
        arrivals: list[Arrival] = []
        raws: dict[tuple[int, int, int], Routed] = {}
        for each in came:
            for arrival in self._arrivals(each):
                arrivals.append(arrival)
                raws[arrival.input, arrival.partition, arrival.offset] = each
        machine = self.machine
        if arrivals:
            self._send(machine.take(arrivals, clock=clock, limit=DUE_KEYS), clock, raws)
        else:
            self._send(machine.advance(clock=clock, limit=DUE_KEYS), clock, raws)
        while machine.pending:
            yield self._given()
            self._send(machine.more(DUE_KEYS), clock, raws)
        yield self._given()

    def finish(self, *, clock: int) -> list[OutgoingRecord]:
        """Return what waits for event time: the input is at its end."""
        self._send(self.machine.finish(), clock, {})
        while self.machine.pending:
            self._send(self.machine.more(DUE_KEYS), clock, {})
        return self._given()

    def _arrivals(self, each: Routed) -> Iterator[Arrival]:
        topic = self._topics[each.topic]
        time = each.moment if each.time is None else each.time
        source = str(each.partition)
        for number in self._numbers[topic]:
            given: Input = self._inputs[number]
            if given.kind == "broadcast":
                self._tables[given.name].put(each.key or b"", each.value)
            elif each.marks:
                if given.rule is not None:
                    yield Arrival(number, b"", None, time, source, each.offset, each.partition)
            elif each.value is None:
                if given.kind == "table":
                    key = each.key or b""
                    yield Arrival(number, key, None, time, source, each.offset, each.partition)
            else:
                record = self._accept[number](each.key, each.value)
                key = each.key or b""
                yield Arrival(number, key, record, time, source, each.offset, each.partition)

    def _send(
        self, given: MachineOutput, clock: int, raws: Mapping[tuple[int, int, int], Routed]
    ) -> None:
        now_at = instant(clock)
        self._results.send(given.results, self._take, source=None, now_at=now_at)
        for late in given.late:
            self.counts[AHEAD if late.reason == "ahead" else LATE] += 1
            self._results.late(late, self._take)
        self.counts[DROPPED] += given.dropped // self._times
        self._bury(given.refused, raws, now_at)
        self.counts.update(given.counts)

    def _bury(
        self,
        refused: Iterable[Refused],
        raws: Mapping[tuple[int, int, int], Routed],
        now_at: datetime,
    ) -> None:
        """Bury what expressions failed on, each record once, with its bytes where they came."""
        buried: set[tuple[str, int, int]] = set()
        for arrival, error in refused:
            place = self._inputs[arrival.input].topic, arrival.partition, arrival.offset
            if place in buried:
                continue
            buried.add(place)
            raw = raws.get((arrival.input, arrival.partition, arrival.offset))
            self.counts[REFUSED] += raw is not None
            value = None if raw is None else raw.value
            self._results.bury_arrival(arrival, error, self._take, now_at, value=value)

    def _take(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: Any = None,  # noqa: ARG002 - the sink goes by the key
    ) -> None:
        marks = tuple((name, text or b"") for name, text in headers)
        self._out.append(OutgoingRecord(topic, key, value, marks))

    def _given(self) -> list[OutgoingRecord]:
        given, self._out = self._out, []
        return given

    @property
    def watermark(self) -> int | None:
        """How far event time has come; None: nowhere yet."""
        return self.machine.watermark if self.machine.watermark > BEGINNING else None
