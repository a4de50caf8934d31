"""The records of a topic as they come: from anywhere, filtered, decoded, in small batches."""

import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.cli.console.log import LogWatcher
from penstock.cli.moments import START_HELP, read_start
from penstock.cli.records import Shown, as_json, plainly, text_of
from penstock.core.expression.compile import compile_predicate
from penstock.core.expression.parse import parse
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.matching.linear import linear_search
from penstock.core.records.codec import JsonCodec
from penstock.errors import ConfigurationError, DataError, DefinitionError
from penstock.serving.desk.offers import Asked, Event
from penstock.serving.http.problems import Problem, problem_of

__all__ = ["MOST_PER_SECOND", "Tail", "decoder_of", "record_document"]

MOST_PER_SECOND = 200
"""So many records are shown of a second; the others are counted, and passed by."""
_MOST_TEXT = 8192
"""So many characters are shown of a value."""
_MOST_PARTITIONS = 1000
_START = "-50"
Decode = Callable[[Any], tuple[Shown, Any]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which records are shown."""

    decode: Decode
    holds: Callable[[Any], bool] | None
    search: Callable[[str], bool] | None
    key: bytes | None

    def take(self, record: Any) -> Shown | None:
        """Return a record as it is shown; None: it is not wanted."""
        if self.key is not None and record.key != self.key:
            return None
        if self.search is not None and not any(
            self.search(text_of(each)) for each in (record.key, record.value)
        ):
            return None
        shown, typed = self.decode(record)
        if self.holds is not None and (typed is None or not self._passes(typed)):
            return None
        return shown

    def _passes(self, typed: Any) -> bool:
        try:
            return self.holds is not None and self.holds(typed)
        except DataError:
            return False


class Tail:
    """Follows a topic for as long as somebody looks."""

    def __init__(self, watcher: LogWatcher, graph: Callable[[], Graph | None]) -> None:
        self._watcher = watcher
        self._graph = graph

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Yield records in batches; ``from``, ``where``, ``find``, ``key``, ``partition`` choose.

        ``passed`` counts the records that were looked at and are not shown. What is wrong with the
        choice is told as an event ``problem``, and is the last one.
        """
        try:
            topic, wanted, batches = self._opened(asked)
        except Problem as problem:
            yield Event("problem", problem.document())
        except ConfigurationError as error:
            yield Event("problem", problem_of(error).document() | {"detail": error.message})
        else:
            yield Event("tail", {"topic": topic, "typed": wanted.decode is not _plain})
            yield from _Pacing().events(batches, wanted)

    def _opened(self, asked: Asked) -> tuple[str, _Wanted, Iterator[Any]]:
        from penstock.backbone.log.reader import LogReader

        topic = asked.path["name"]
        wanted = self._wanted(topic, asked.query)
        start = _start(asked.query.get("from", "") or _START)
        partitions = _partitions(asked.query.get("partition", ""))
        batches = LogReader(self._watcher.connection).batches(
            topic,
            start=start,
            partitions=partitions,
            follow=True,
            stop=asked.stop,
            when_trimmed="skip",
        )
        return topic, wanted, batches

    def _wanted(self, topic: str, query: Any) -> _Wanted:
        data = self._data(topic)
        where, find, key = query.get("where", ""), query.get("find", ""), query.get("key", "")
        try:
            holds = _predicate(where, data) if where else None
            search = linear_search(find) if find else None
        except DefinitionError as error:
            raise _wrong("where", error.problems[0].message) from error
        except ValueError as error:
            raise _wrong("find", f"it is not a regular expression: {error}") from error
        return _Wanted(decoder_of(data), holds, search, key.encode() or None)

    def _data(self, topic: str) -> OnLog | None:
        graph = self._graph()
        found = graph.on_log if graph else ()
        return next((data for data in found if data.topic.name == topic), None)


class _Pacing:
    """Cuts what is read into events, and keeps to a rate that a page can show."""

    def __init__(self) -> None:
        self._second = 0
        self._shown = 0

    def events(self, batches: Iterator[Any], wanted: _Wanted) -> Iterator[Event]:
        from penstock.backbone.client.logrecord import log_record

        for batch in batches:
            passed, found = 0, []
            for raw in batch:
                shown = wanted.take(log_record(raw)) if self._room() else None
                if shown is None:
                    passed += 1
                else:
                    self._shown += 1
                    found.append(record_document(shown))
            yield Event("records", {"records": found, "passed": passed})

    def _room(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._shown = second, 0
        return self._shown < MOST_PER_SECOND


def record_document(shown: Shown) -> dict[str, Any]:
    """Return a record as JSON; what is too long for a page is cut."""
    found = as_json(shown)
    text = msgspec.json.encode(found["value"], enc_hook=str).decode()
    if len(text) > _MOST_TEXT:
        found["value"], found["cut"] = text[:_MOST_TEXT], len(text)
    if found["key"] and len(found["key"]) > _MOST_TEXT:
        found["key"] = found["key"][:_MOST_TEXT]
    return found


def _plain(record: Any) -> tuple[Shown, Any]:
    return plainly(record), None


def decoder_of(data: OnLog | None) -> Decode:
    """Return what gives a record as it is shown, and as its type has it; None: it has none."""
    if data is None:
        return _plain
    codec: JsonCodec[Any] = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)

    def decode(record: Any) -> tuple[Shown, Any]:
        if record.value is None and data.kind == "table":
            return Shown(record, None), None
        try:
            typed = codec.accept(record.key, record.value)
        except DataError as error:
            return Shown(record, plainly(record).value, f"{error.message} [{error.code}]"), None
        return Shown(record, msgspec.to_builtins(typed)), typed

    return decode


def _predicate(text: str, data: OnLog | None) -> Callable[[Any], bool]:
    if data is None:
        raise _wrong("where", "only topics of the application have types that an expression needs")
    return compile_predicate(parse(text, data.record.schema))


def _start(text: str) -> Any:
    try:
        return read_start(text)
    except ArgumentTypeError as error:
        raise _wrong("from", str(error), allowed=START_HELP) from error


def _partitions(text: str) -> list[int] | None:
    if not text:
        return None
    words = [word.strip() for word in text.split(",")]
    if len(words) > _MOST_PARTITIONS or not all(w.isdecimal() and len(w) < 7 for w in words):  # noqa: PLR2004
        raise _wrong("partition", f"{text!r} is none", allowed="numbers with commas: 0,3")
    return [int(word) for word in words]


def _wrong(name: str, why: str, **more: Any) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "query.wrong", f"{name}: {why}", **more)
