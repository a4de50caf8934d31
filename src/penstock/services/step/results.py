"""What an operator gives on its way to the log: results, late records, dead letters, marks."""

from datetime import datetime
from typing import Any

import msgspec

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.expression.values.times import from_micros
from penstock.core.graph.graph import Graph
from penstock.core.graph.operators import is_repartitioned, plan_of, written_by
from penstock.core.graph.parts import Service
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.operators.marks import WITHDRAWN, mark_headers, source_headers
from penstock.core.operators.operator import Arrival, LateArrival, Result
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.core.rollup.late import LATE_RECORD, LateRecord
from penstock.core.topic import Partitioning
from penstock.errors import DataError
from penstock.services.step.outputs import Send

__all__ = ["Results"]

_SECOND = 1_000_000


class Results:
    """Sends what a machine gave.

    A result that its topic does not take becomes a dead letter, and names its part.
    """

    def __init__(self, graph: Graph, service: Service) -> None:
        plan, data = plan_of(service), written_by(service)
        codec: JsonCodec[Any] = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
        # What was accepted and is passed on as it is need not be read again.
        as_it_was = any(each.record.cls is data.record.cls for each in plan.inputs)
        self._encode = codec.encode if as_it_was else codec.encode_valid
        self._key = codec.key
        self._topic = data.topic.name
        self._table = data.kind == "table"
        self._by: Partitioning | None = (
            "round_robin" if data.topic.partitioning == "round_robin" else None
        )
        self._partitions = data.topic.partitions if is_repartitioned(data) else 0
        self._marked: dict[str, int] = {}
        self._part = service.name
        self._inputs = plan.inputs
        self._late_topic = graph.late_records.name
        self._late_codec = JsonCodec(LATE_RECORD)
        self._dead_letters = graph.dead_letters.name
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
        self, arrival: Arrival, error: DataError, send: Send, now_at: datetime
    ) -> None:
        """Bury a record that came earlier, as it is known now."""
        given = self._inputs[arrival.input]
        place = Coordinates(given.topic, arrival.partition, arrival.offset)
        value = msgspec.json.encode(arrival.record)
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


def log_time(raw: RawRecord) -> int:
    """Return when a record was written, in microseconds."""
    return max(0, raw.timestamp()[1]) * 1000


def _instant(micros: int) -> datetime:
    return instant(min(max(micros, FIRST_MICROS), LAST_MICROS))
