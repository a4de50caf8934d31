"""Records as points of a time-series store: Influx line protocol over HTTP."""

import http.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from penstock.connectors.connector import BatchLimits, Row, RowsRefusedError
from penstock.connectors.http.exchange import Endpoint, Exchange, read_endpoint
from penstock.connectors.http.halves import Halves
from penstock.connectors.influx.points import Points, writable_name
from penstock.connectors.opening import sink_of
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference
from penstock.core.graph.parts import Sink, Source
from penstock.core.records.eventtime import event_time_of
from penstock.errors import ConfigurationError, DataError, Problem

__all__ = ["InfluxSink", "PointsWriter", "influx_lines"]

_ROWS, _SIZE, _SPAN = 5_000, 4 << 20, timedelta(seconds=1)
_REFUSED = (400, 413, 422)
"""Answers that speak of what was sent; all others that are no success are a person's business."""
_NANOSECONDS = ("ns", "n", "nanosecond")
_HEADERS = {"Content-Type": "text/plain; charset=utf-8"}
_NO_ADD = "a result was taken back, and line protocol cannot delete a point"


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluxSink:
    """A measurement of a time-series store; :func:`influx_lines` makes it."""

    endpoint: Endpoint
    measurement: str
    tags: tuple[str, ...] | None
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    delivery: Literal["at_least_once"] = field(default="at_least_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"measurement {self.measurement} at {self.endpoint.shown}"

    def open(self, sink: Sink) -> "PointsWriter":
        """Compare the options with the record; the connection is opened by the first request."""
        points = self._points(sink)
        if isinstance(self.endpoint.url, Reference) and not _in_nanoseconds(
            self.endpoint.url.read()
        ):
            raise ConfigurationError(
                f"sink {sink.name!r}: the URL asks for another precision than nanoseconds",
                code="connector.refused",
                hint="leave precision out of it",
            )
        return PointsWriter(Exchange(self.endpoint), points)

    def attempt(self, part: Sink | Source) -> str:
        """Write no points at all, which shows whether the server would take some."""
        writer = self.open(sink_of(part))
        try:
            return writer.attempt()
        finally:
            writer.close()

    def _points(self, sink: Sink) -> Points:
        schema = sink.reads.record.schema
        time = event_time_of(schema)
        if time is None:
            raise ConfigurationError(
                f"sink {sink.name!r}: {schema.name} has no event time, which points need",
                code="sink.no-time",
                hint=f'declare one: @record(time="...") above class {schema.name}',
            )
        names = tuple(each.name for each in schema.fields)
        tags = schema.key if self.tags is None else self.tags
        if unknown := sorted(set(tags) - set(names)):
            raise ConfigurationError(
                f"sink {sink.name!r}: {schema.name} has no {', '.join(unknown)}",
                code="sink.no-tag",
                hint=f"tags are among {', '.join(names)}",
            )
        tags = tuple(each for each in tags if each != schema.time)
        fields = tuple(each for each in names if each not in tags and each != schema.time)
        if not fields:
            raise ConfigurationError(
                f"sink {sink.name!r}: {schema.name} has no field beside tags and event time",
                code="sink.no-field",
                hint="tags=(...) says which fields are tags",
            )
        return Points(measurement=self.measurement, tags=tags, fields=fields, time=time)


class PointsWriter:
    """Writes batches for one sink."""

    def __init__(self, exchange: Exchange, points: Points) -> None:
        self._exchange, self._points = exchange, points
        self._lines: dict[int, bytes] = {}
        """The lines of the batch that is written, by the offsets of their records."""
        self._halves = Halves(self._post)

    def positions(self) -> dict[int, int]:
        """Return nothing: a time-series store keeps no positions."""
        return {}

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write rows; those that cannot be said or are refused are told."""
        del position
        self._lines = {}
        refused: dict[int, str] = {}
        for place, row in enumerate(rows):
            try:
                if row.change != "add":
                    refused[place] = _NO_ADD
                else:
                    self._lines[row.offset] = self._points.line(row.record)
            except DataError as error:
                refused[place] = error.message
        if refused:
            raise RowsRefusedError(refused)
        self._halves.write(partition, rows)

    def attempt(self) -> str:
        """Write an empty batch; ConfigurationError where the server would take none."""
        answer = self._exchange.ask("POST", body=b"", headers=_HEADERS)
        if answer.status >= 300 and answer.status not in _REFUSED:  # noqa: PLR2004
            raise _unwilling(answer.words)
        return "it takes points"

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def _post(self, partition: int, rows: Sequence[Row]) -> str | Mapping[int, str]:
        del partition
        body = b"".join(self._lines[row.offset] for row in rows)
        answer = self._exchange.ask("POST", body=body, headers=_HEADERS)
        if answer.status == http.client.NO_CONTENT or (
            answer.status == http.client.OK and not answer.body.strip()
        ):
            return {}  # an early InfluxDB says 200 and why it has written nothing
        if answer.status in _REFUSED:
            return answer.words
        raise _unwilling(answer.words)


def influx_lines(
    url: str,
    *,
    measurement: str,
    tags: tuple[str, ...] | None = None,
    headers: dict[str, str] | None = None,
    rows: int = _ROWS,
    size: str | int = _SIZE,
    every: str | timedelta = _SPAN,
    timeout: str | timedelta = "10s",
) -> InfluxSink:
    """Write the records of a stream as points, by Influx line protocol over HTTP.

    InfluxDB, QuestDB and other time-series stores take it. A record is a point at its event time,
    in nanoseconds. After a crash, points may be written again: the same tags and time are the same
    point, so a store that keeps each once (InfluxDB; a table of QuestDB with ``DEDUP``) holds each
    record once. Records with the same tags and time are one point, too. While the store is away,
    or says later, the sink is degraded and tries again for as long as that takes. Records that it
    refuses, or that the protocol cannot say, become dead letters.

    Args:
        url: Where points are written, ``https://metrics.example/api/v2/write?org=o&bucket=b``, or a
            reference to it.
        measurement: The name of the measurement, which QuestDB makes a table of.
        tags: Which fields are tags, which make a point known; None: those of the key.
        headers: Headers of each request; a value may be a reference, and one that is a secret must
            be: ``{"Authorization": "env:INFLUX_AUTHORIZATION"}``.
        rows: How many records a request has at most.
        size: How large the records of a request are at most, as JSON.
        every: How long the first record of a request waits for others.
        timeout: How long the server may be silent.

    Examples:
        >>> points = influx_lines("http://metrics:9000/write", measurement="readings")
        >>> app.sink("metrics", points, reads=readings).summary
        'sink, at least once, measurement readings at metrics:9000'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("influx_lines", problems)
    name: Any = measurement
    if not isinstance(name, str) or not writable_name(name):
        text = f"{name!r} is empty, begins with # or _, or has a backslash or a control character"
        options.wrong("measurement", text, 'measurement="readings"')
        name = "unknown"
    if not _in_nanoseconds(str(url)):
        options.wrong("url", "points are in nanoseconds", "leave precision out of it")
    return InfluxSink(
        endpoint=read_endpoint(options, url, headers, timeout),
        measurement=name,
        tags=_tags(options, tags),
        limits=BatchLimits(
            rows=options.whole("rows", rows, _ROWS, least=1, most=100_000),
            size=options.size("size", size, _SIZE),
            span=options.positive_span("every", every, _SPAN),
        ),
        problems=tuple(problems),
    )


def _tags(options: ConnectorOptions, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    texts = isinstance(given, tuple | list) and all(isinstance(each, str) for each in given)
    if not texts or len(set(given)) < len(given):
        options.wrong("tags", f"{given!r} are no names of fields", 'tags=("device", "room")')
        return None
    return tuple(given)


def _in_nanoseconds(url: str) -> bool:
    try:
        asked = parse_qs(urlsplit(url).query).get("precision", [])
    except ValueError:
        return True  # it is told as no URL
    return all(each in _NANOSECONDS for each in asked)


def _unwilling(words: str) -> ConfigurationError:
    return ConfigurationError(
        f"the URL does not take points: {words}",
        code="connector.refused",
        hint="look at the URL and at the headers; a redirection is not followed",
    )
