"""What an operator gives on its way to the log: results, late records, dead letters, marks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from penstock.core.expression.values.times import from_micros
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.operators.marks import WITHDRAWN, mark_headers, source_headers
from penstock.core.operators.operator import Arrival, Input, LateArrival, Result
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.core.records.record import RecordType
from penstock.core.rollup.late import LATE_RECORD, LateRecord
from penstock.core.topic import Partitioning
from penstock.core.wiring.operators import is_repartitioned, plan_of, written_by
from penstock.errors import DataError

__all__ = ["ResultDestination", "Results", "result_destination"]

Send: TypeAlias = Callable[..., None]
"""Takes a record for the log: its topic; ``key``, ``value``, ``headers``, ``partition``."""

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDestination:
    """Where the results of a part go; plain values that can travel."""

    part: str
    inputs: tuple[Input, ...]
    record: RecordType[Any]
    topic: str
    table: bool
    round_robin: bool
    marked_partitions: int
    """How many partitions are told how far event time is; 0: readers follow their own."""
    as_it_was: bool
    """Whether a record may be passed on as it came: it need not be read again."""
    max_record_bytes: int
    late_topic: str
    dead_letters: str


def result_destination(graph: Graph, part: Pipeline | Service) -> ResultDestination:
    """Return where an operator of an application writes its results."""
    plan, data = plan_of(part), written_by(part)
    return ResultDestination(
        part=part.name,
        inputs=plan.inputs,
        record=data.record,
        topic=data.topic.name,
        table=data.kind == "table",
        round_robin=data.topic.partitioning == "round_robin",
        marked_partitions=data.topic.partitions if is_repartitioned(data) else 0,
        as_it_was=any(each.record.cls is data.record.cls for each in plan.inputs),
        max_record_bytes=data.topic.max_record_bytes,
        late_topic=graph.late_records.name,
        dead_letters=graph.dead_letters.name,
    )


class Results:
    """Sends what a machine gave.

    A result that its topic does not take becomes a dead letter, and names its part.
    """

    def __init__(self, to: ResultDestination) -> None:
        codec: JsonCodec[Any] = JsonCodec(to.record, max_bytes=to.max_record_bytes)
        self._encode = codec.encode if to.as_it_was else codec.encode_valid
        self._key = codec.key
        self._topic = to.topic
        self._table = to.table
        self._by: Partitioning | None = "round_robin" if to.round_robin else None
        self._partitions = to.marked_partitions
        self._marked: dict[str, int] = {}
        self._part = to.part
        self._inputs = to.inputs
        self._late_topic = to.late_topic
        self._late_codec = JsonCodec(LATE_RECORD)
        self._dead_letters = to.dead_letters
        self.last_dead_letter = ""

    def send(
        self, results: list[Result], send: Send, *, source: str | None, now_at: datetime
    ) -> None:
        """Send results in their order; ``source`` is whose event time they carry."""
        extra = source_headers(source) if self._partitions and source is not None else ()
        topic, by, encode, key_of, table = (
            self._topic,
            self._by,
            self._encode,
            self._key,
            self._table,
        )
        for result in results:
            change, record, _, headers, own_key = result
            try:
                key = own_key if record is None else key_of(record)
                if change == "add":
                    value = encode(record)
                elif table:
                    value = None
                elif change == "withdraw":
                    value, headers = encode(record), (*headers, WITHDRAWN)
                else:
                    continue  # the records of a stream stay
            except DataError as error:
                self._bury(result, error, send, now_at)
                continue
            send(topic, key=key, value=value, headers=(*headers, *extra), partition=by)

    def mark(self, source: str, time: int, send: Send) -> None:
        """Tell every partition how far event time is in a source, where records carry its times."""
        if not self._partitions or time <= self._marked.get(source, time - 1):
            return
        self._marked[source] = time
        headers = mark_headers(source, time)
        for number in range(self._partitions):
            send(self._topic, key=None, value=None, headers=headers, partition=number)

    def late(self, found: LateArrival, send: Send) -> None:
        """Write a record that came too late into the ledger."""
        arrival = found.arrival
        made = LateRecord(
            part=self._part,
            topic=self._inputs[arrival.input].topic,
            partition=arrival.partition,
            offset=arrival.offset,
            group=msgspec.json.encode([arrival.key.decode(errors="replace")]).decode(),
            happened_at=_instant(arrival.time),
            reason=found.reason,
            late_by_seconds=found.late_by / _SECOND,
            watermark_at=None
            if found.reason == "ahead"
            else from_micros(arrival.time + found.late_by),
        )
        codec = self._late_codec
        send(self._late_topic, key=codec.key(made), value=codec.encode(made))

    def bury_arrival(
        self,
        arrival: Arrival,
        error: DataError,
        send: Send,
        now_at: datetime,
        *,
        value: bytes | None = None,
    ) -> None:
        """Bury a record that came earlier: its bytes, or as it is known now."""
        given = self._inputs[arrival.input]
        place = Coordinates(given.topic, arrival.partition, arrival.offset)
        value = msgspec.json.encode(arrival.record) if value is None else value
        self._letter(place, error, send, now_at, key=arrival.key, value=value)

    def _bury(self, result: Result, error: DataError, send: Send, now_at: datetime) -> None:
        """Bury a result: what can be said of it is how it is shown."""
        value = msgspec.json.encode({"part": self._part, "result": repr(result.record)})
        nowhere = Coordinates(self._topic, -1, -1)
        self._letter(nowhere, error, send, now_at, key=None, value=value)

    def _letter(
        self,
        place: Coordinates,
        error: DataError,
        send: Send,
        now_at: datetime,
        *,
        key: bytes | None,
        value: bytes,
    ) -> None:
        self.last_dead_letter = f"{place}: {error.message} [{error.code}]"
        headers = dead_letter_headers(error, place, part=self._part, at=now_at)
        send(self._dead_letters, key=key, value=value, headers=headers)


def _instant(micros: int) -> datetime:
    return instant(min(max(micros, FIRST_MICROS), LAST_MICROS))
