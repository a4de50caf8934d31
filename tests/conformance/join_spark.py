"""The join cases on Spark: the host of operators, in its state store, each step a micro-batch."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from join_form import Case, Declared, Feed, declare
from operator_spark import CaseQuery, arrival

from penstock.core.graph.parts import Pipeline
from penstock.core.operators.marks import WITHDRAWN
from penstock.core.records.codec import JsonCodec
from penstock.core.records.eventtime import event_time_of
from penstock.core.wiring.operators import plan_of, written_by
from penstock.core.wiring.results import result_destination
from penstock.errors import DataError
from penstock.pipelines.operators.hosting import Hosting
from penstock.pipelines.operators.routing import Routed

__all__ = ["SparkEngines"]


class SparkEngines:
    """Makes engines that share one query."""

    def __init__(self) -> None:
        self._query = CaseQuery()

    def make(self, case: Case) -> Iterator[tuple[Declared, Any]]:
        """Yield the application of a case, with its engine."""
        declared = declare(case, on="spark")
        yield declared, SparkEngine(declared, self._query)

    def close(self) -> None:
        """End the query."""
        self._query.close()


class SparkEngine:
    """The application of one case: each part is a key of the query's state."""

    steps = True

    def __init__(self, declared: Declared, query: CaseQuery) -> None:
        self._query = query
        self._graph = graph = declared.graph
        self._results = {data.topic.name: data for data in declared.results}
        self._data = {data.topic.name: data for data in graph.on_log}
        self._codecs = {name: JsonCodec(data.record) for name, data in self._data.items()}
        self._parts = [each for each in graph.parts if isinstance(each, Pipeline)]
        self._hostings = {
            part.name: Hosting(
                plan_of(part),
                result_destination(graph, part),
                tuple(dict.fromkeys(each.topic for each in plan_of(part).inputs)),
            )
            for part in self._parts
        }
        self._case = declared.case["id"]
        self._ends: dict[str, int] = defaultdict(int)
        self._raw: list[Any] = []
        self._late: list[tuple[str, int]] = []

    def feed(self, feeds: list[Feed]) -> None:
        """Feed the records of a step as one moment, and what comes out of it to the next part."""
        came = [(data.topic.name, key, value, ms * 1000) for data, key, value, ms in feeds]
        self._give(came)

    def restart(self) -> None:
        """Each moment begins anew from Spark's state."""

    def take(self) -> list[Any]:
        """Return what came out since the last time."""
        found, self._raw = self._raw, []
        return found

    def late(self) -> list[tuple[str, int]]:
        """Return topics and offsets of the records in the late ledger."""
        return self._late

    def dropped(self) -> int | None:
        """Return None: the query's progress counts for all cases together."""
        return None

    def close(self) -> None:
        """The query goes on for others."""

    def _give(self, came: list[tuple[str, bytes | None, bytes | None, int]]) -> None:
        routed: dict[str, list[tuple[str, Routed]]] = defaultdict(list)
        for topic, key, value, log in came:
            offset = self._ends[topic]
            self._ends[topic] += 1
            try:
                time = self._time(topic, key, value)
            except DataError:
                continue  # the gate refuses it
            for part in self._parts:
                topics = self._hostings[part.name].topics
                if topic in topics:
                    each = arrival(topics.index(topic), offset, key, value, time)
                    routed[part.name].append((topic, each._replace(moment=log)))
        for part in self._parts:
            if part.name in routed:
                self._ask(part, [each for _, each in routed[part.name]])

    def _ask(self, part: Pipeline, came: list[Routed]) -> None:
        hosting, data = self._hostings[part.name], written_by(part)
        written = self._query.ask(f"{self._case} {part.name}", hosting, came)
        following: list[tuple[str, bytes | None, bytes | None, int]] = []
        for each in written:
            if each.topic == self._graph.late_records.name:
                entry = msgspec.json.decode(each.value or b"")
                self._late.append((entry["topic"], entry["offset"]))
            elif each.topic == data.topic.name:
                if each.topic in self._results:
                    self._raw.append((data, each.key, each.value, each.headers))
                if WITHDRAWN not in each.headers:
                    log = max(routed.moment for routed in came)
                    following.append((each.topic, each.key, each.value, log))
        if following:
            self._give(following)

    def _time(self, topic: str, key: bytes | None, value: bytes | None) -> int | None:
        """Return the event time of a record; None where the time at which it was written counts."""
        data = self._data[topic]
        if value is None and data.kind == "table" and key is not None:
            return None
        record = self._codecs[topic].accept(key, value)
        time = event_time_of(data.record.schema)
        return None if time is None else time(record)
