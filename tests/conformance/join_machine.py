"""The join cases on the pure machines, cut into moments at random, with restarts in between."""

import random
from collections import defaultdict
from typing import Any

from join_form import Declared, Feed

from penstock.core.graph.parts import Service
from penstock.core.operators.operator import Arrival, MachineOutput
from penstock.core.panes.store import MemoryStore
from penstock.core.records.codec import JsonCodec
from penstock.core.records.eventtime import event_time_of
from penstock.core.wiring.operators import plan_of, written_by
from penstock.errors import DataError

Raw = tuple[Any, bytes | None, bytes | None, Any]


class _Part:
    """An operator of the application, with its store."""

    def __init__(self, service: Service, broadcasts: dict[str, "_Whole"]) -> None:
        self.plan = plan_of(service)
        self.writes = written_by(service)
        self.store = MemoryStore()
        self.broadcasts = {
            each.name: broadcasts[each.topic]
            for each in self.plan.inputs
            if each.kind == "broadcast"
        }
        self.restart()

    def restart(self) -> None:
        self.machine = self.plan.machine(self.store, self.writes.record, broadcasts=self.broadcasts)


class _Whole(dict[bytes, Any]):
    """The rows of a broadcast table."""


class MachineEngine:
    """The application of one case."""

    steps = True

    def __init__(self, declared: Declared, *, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._results = {data.name for data in declared.results}
        self._graph = declared.graph
        self._codecs = {data.name: JsonCodec(data.record) for data in self._graph.on_log}
        self._whole: dict[str, _Whole] = defaultdict(_Whole)
        services = [part for part in self._graph.parts if isinstance(part, Service)]
        self._parts = [_Part(service, self._whole) for service in services]
        self._raw: list[Raw] = []
        self._ends: dict[str, int] = defaultdict(int)
        self._late: list[tuple[str, int]] = []
        self._dropped = 0

    def feed(self, feeds: list[Feed]) -> None:
        """Feed records in moments of a random size; between two there may be a restart."""
        left = list(feeds)
        while left:
            # Of several parts the next one sees each record before the record that follows.
            size = self._random.randint(1, len(left)) if len(self._parts) == 1 else 1
            self._moment(left[:size])
            left = left[size:]
            if self._random.random() < 0.3:
                self.restart()

    def restart(self) -> None:
        """Begin anew from what is stored."""
        for part in self._parts:
            part.machine.flush()
            part.restart()

    def take(self) -> list[Raw]:
        """Return what came out since the last time."""
        found, self._raw = self._raw, []
        return found

    def late(self) -> list[tuple[str, int]]:
        """Return topics and offsets of the records in the late ledger."""
        return self._late

    def dropped(self) -> int | None:
        """Return how many records were dropped, late ones too."""
        return self._dropped + len(self._late)

    def close(self) -> None:
        """Nothing is open."""

    def _moment(self, feeds: list[Feed]) -> None:
        runs: list[tuple[Any, list[Any]]] = []
        for data, key, value, ms in feeds:
            try:
                arrival = self._arrival(data, key, value, ms * 1000)
            except DataError:
                self._dropped += 1
                continue
            runs.append((data, [arrival]))
        self._give(runs)

    def _arrival(self, data: Any, key: bytes | None, value: bytes | None, log: int) -> Arrival:
        offset = self._ends[data.name]
        self._ends[data.name] += 1
        if value is None and data.kind == "table" and key is not None:
            return Arrival(0, key, None, log, "0", offset)
        record = self._codecs[data.name].accept(key, value)
        time = event_time_of(data.record.schema)
        return Arrival(0, key or b"", record, log if time is None else time(record), "0", offset)

    def _give(self, runs: list[tuple[Any, list[Arrival]]]) -> None:
        """Give what came to each part that reads it, and what that gives to the next."""
        readers = [
            part
            for part in self._parts
            if any(data.topic.name == each.topic for data, _ in runs for each in part.plan.inputs)
        ]
        for part in readers:
            arrivals: list[Arrival] = []
            for data, came in runs:
                for number, each in enumerate(part.plan.inputs):
                    if each.topic != data.topic.name:
                        continue
                    if each.kind == "broadcast":
                        self._take(part, arrivals)
                        arrivals = []
                        for arrival in came:
                            self._whole[each.topic].pop(arrival.key, None)
                            if arrival.record is not None:
                                self._whole[each.topic][arrival.key] = arrival.record
                    else:
                        arrivals += [arrival._replace(input=number) for arrival in came]
            self._take(part, arrivals)

    def _take(self, part: _Part, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        self._note(
            part, part.machine.take(arrivals, clock=0, limit=self._random.choice([None, 1, 2]))
        )
        while part.machine.pending:
            self._note(part, part.machine.more(self._random.choice([None, 1])))

    def _note(self, part: _Part, given: MachineOutput) -> None:
        self._dropped += given.dropped + len(given.refused)
        for late in given.late:
            topic = part.plan.inputs[late.arrival.input].topic
            self._late.append((topic, late.arrival.offset))
        data, codec = part.writes, self._codecs[part.writes.name]
        runs = []
        for result in given.results:
            key = result.key if result.record is None else codec.key(result.record)
            headers = list(result.headers)
            value = None
            if result.change != "delete" and not (
                result.change == "withdraw" and data.kind == "table"
            ):
                value = codec.encode_valid(result.record)
            if data.name in self._results:
                self._raw.append((data, key, value, headers))
            if result.change != "withdraw":
                log = result.time
                runs.append((data, [self._arrival(data, key, value, log)]))
        if runs:
            self._give(runs)
