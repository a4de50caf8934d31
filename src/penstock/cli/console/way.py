"""The way of one record: what came of its key behind it, step by step, and how long that took."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.cli.console.log import LogWatcher
from penstock.cli.console.tail import decoder_of, record_document
from penstock.core.graph.data import Lake, OnLog
from penstock.core.graph.graph import Graph
from penstock.core.records.deadletter import read_letter
from penstock.errors import ConfigurationError
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem

if TYPE_CHECKING:
    from penstock.backbone.client.logrecord import LogRecord

__all__ = ["Step", "Ways", "downstream"]

_WITHIN = timedelta(minutes=1)
"""What came later is not looked for."""
_LOOKED = 20_000
"""So many records of a topic are looked at, at most."""
_FOUND = 10
"""So many records of a step are told."""
_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Step:
    """A stream or table that records of another one come to, through parts."""

    data: OnLog
    through: tuple[str, ...]


def downstream(graph: Graph, start: OnLog) -> list[Step]:
    """Return all streams and tables behind one, the nearest first, each with a way to it."""
    seen: dict[str, Step] = {start.name: Step(start, ())}
    queue = [seen[start.name]]
    for step in queue:
        for part in graph.parts:
            if step.data.name not in {each.name for each in part.inputs}:
                continue
            for data in part.outputs:
                if data.name not in seen and not isinstance(data, Lake):
                    seen[data.name] = Step(data, (*step.through, part.name))
                    queue.append(seen[data.name])
    return queue[1:]


class Ways:
    """Follows records through the streams and tables of an application by their key."""

    def __init__(self, watcher: LogWatcher, graph: Callable[[], Graph | None]) -> None:
        self._watcher = watcher
        self._graph = graph

    def document(self, asked: Asked) -> dict[str, Any]:
        """Return a record, what has its key behind it, and what became a dead letter of it."""
        topic = asked.path["name"]
        place = _number(asked.path, "partition"), _number(asked.path, "offset")
        graph = self._graph()
        data = next((d for d in graph.on_log if d.topic.name == topic), None) if graph else None
        record = self._at(topic, *place)
        found: dict[str, Any] = {
            "record": record_document(decoder_of(data)(record)[0]),
            "node": data.name if data else None,
            "within_seconds": _WITHIN.total_seconds(),
            "steps": [],
            "dead_letters": [],
        }
        if graph is None or data is None or record.timestamp_at is None:
            return found
        if record.key is not None:
            found["steps"] = [self._step(step, record) for step in downstream(graph, data)]
        found["dead_letters"] = list(self._letters(graph.dead_letters.name, record))
        return found

    def _step(self, step: Step, record: "LogRecord") -> dict[str, Any]:
        decode, looked = decoder_of(step.data), 0
        records: list[dict[str, Any]] = []
        for each in self._behind(step.data.topic.name, record):
            looked += 1
            if each.key == record.key and len(records) < _FOUND:
                after = each.timestamp_at - record.timestamp_at  # type: ignore[operator] # both have
                document = record_document(decode(each)[0])
                records.append(document | {"after_seconds": after.total_seconds()})
        return {
            "node": step.data.name,
            "topic": step.data.topic.name,
            "through": step.through,
            "records": sorted(records, key=lambda each: each["after_seconds"]),
            "looked": looked,
            "whole": looked < _LOOKED,
        }

    def _letters(self, topic: str, record: "LogRecord") -> Iterator[dict[str, Any]]:
        place = (record.topic, record.partition, record.offset)
        for each in self._behind(topic, record):
            letter = read_letter(each.key, each.value, each.headers)
            own = letter.coordinates
            if (own.topic, own.partition, own.offset) == place:
                yield {
                    "part": letter.part,
                    "code": letter.code,
                    "reason": letter.reason,
                    "at": letter.at,
                }

    def _at(self, topic: str, partition: int, offset: int) -> "LogRecord":
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import Offset

        reader = LogReader(self._watcher.connection)
        found = reader.read(topic, start=Offset({partition: offset}), partitions=[partition])
        record = next(iter(found), None)
        if record is None or record.offset != offset:
            text = f"there is no record at {topic}[{partition}]@{offset}"
            raise Problem(HTTPStatus.NOT_FOUND, "record.missing", text)
        return record

    def _behind(self, topic: str, record: "LogRecord") -> Iterator["LogRecord"]:
        """Return what was written to a topic from a record on, for a while."""
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import LATEST, Instant

        at = record.timestamp_at or datetime.now(UTC)
        end = Instant(at + _WITHIN) if at + _WITHIN < datetime.now(UTC) else LATEST
        try:
            found = LogReader(self._watcher.connection).read(
                topic, start=Instant(at), end=end, when_trimmed="skip"
            )
        except ConfigurationError:
            return iter(())  # it is declared, and nobody has made it yet
        return islice(found, _LOOKED)


def _number(path: Mapping[str, str], name: str) -> int:
    text = str(path[name])
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise Problem(HTTPStatus.BAD_REQUEST, "path.wrong", f"{name} is {text!r}, not a number")
    return int(text)
