"""Records as documents of OpenSearch: the options of the sink."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.connectors.connector import BatchLimits
from penstock.connectors.http.exchange import Endpoint, Exchange, read_endpoint
from penstock.connectors.opening import closed_on_failure, sink_of, what_was_written
from penstock.connectors.opensearch.documents import Documents
from penstock.connectors.opensearch.writer import DocumentsWriter
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.data import Table
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["OpenSearchSink", "opensearch_documents"]

_ROWS, _SIZE, _SPAN = 1_000, 4 << 20, timedelta(seconds=1)
_POSITIONS = "penstock-positions"
_LONGEST_NAME = 255
_NOT_IN_NAME = frozenset('\\/*?"<>| ,#:')


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSink:
    """An index of OpenSearch; :func:`opensearch_documents` makes it."""

    endpoint: Endpoint
    index: str
    id: Literal["key", "record"]
    positions: str
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    takes_deletions: Literal[True] = field(default=True, init=False)
    delivery: Literal["exactly_once"] = field(default="exactly_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"index {self.index} of OpenSearch at {self.endpoint.shown}"

    def open(self, sink: Sink) -> DocumentsWriter:
        """Connect, and read what was written."""
        self._fits(sink)
        topic = sink.reads.topic
        writer = DocumentsWriter(
            Exchange(self.endpoint),
            Documents(self.index, topic=topic.name, by_key=self.id == "key"),
            positions=self.positions,
            name=f"{sink.name}:{topic.name}:{self.index}",
            partitions=topic.partitions,
        )
        with closed_on_failure(writer):
            writer.prepare()
        return writer

    def attempt(self, part: Sink | Source) -> str:
        """Connect, and read what was written."""
        return what_was_written(self.open(sink_of(part)))

    def _fits(self, sink: Sink) -> None:
        schema, name = sink.reads.record.schema, sink.name
        if self.id == "key" and not schema.key:
            raise ConfigurationError(
                f"sink {name!r}: {schema.name} has no key for a document to be known by",
                code="sink.no-key",
                hint='id="record" makes a document of each record',
            )
        if self.id == "record" and isinstance(sink.reads, Table):
            raise ConfigurationError(
                f"sink {name!r}: rows of a table are known by their key",
                code="sink.no-key",
                hint='leave id="record" out',
            )


def opensearch_documents(
    index: str,
    *,
    url: str,
    id: Literal["key", "record"] = "key",  # noqa: A002 - as the server calls it
    positions: str = _POSITIONS,
    headers: dict[str, str] | None = None,
    rows: int = _ROWS,
    size: str | int = _SIZE,
    every: str | timedelta = _SPAN,
    timeout: str | timedelta = "10s",
) -> OpenSearchSink:
    """Write the records of a stream or a table as documents of an index of OpenSearch.

    A record replaces the document under its key; a deletion from a table, or a result that is taken
    back, deletes it. The version of a document is the offset of its record and one, so that a
    repeated or older write never replaces a newer one: the index holds what one write of each
    record would have left. Positions are kept in an index of their own. Records that the server
    refuses become dead letters with its words. While it is away, or says later, the sink is
    degraded and tries again for as long as that takes.

    Args:
        index: The name of the index, or an alias that one index is written by.
        url: Where the server is, ``https://search.example:9200``, or a reference to it.
        id: ``"key"``: a document is the latest record of its key. ``"record"``: each record of a
            stream is a document, known by topic, partition and offset.
        positions: The index that keeps how far sinks have written.
        headers: Headers of each request; a value may be a reference, and one that is a secret must
            be: ``{"Authorization": "env:SEARCH_AUTHORIZATION"}``.
        rows: How many records a request has at most.
        size: How large the records of a request are at most.
        every: How long the first record of a request waits for others.
        timeout: How long the server may be silent.

    Examples:
        >>> found = opensearch_documents("readings", url="http://search:9200", id="record")
        >>> app.sink("search", found, reads=readings).summary
        'sink, exactly once, index readings of OpenSearch at search:9200'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("opensearch_documents", problems)
    if "?" in str(url):
        options.wrong("url", "it has a query", 'url="https://search.example:9200"')
    return OpenSearchSink(
        endpoint=read_endpoint(options, url, headers, timeout),
        index=_name(options, "index", index),
        id=options.word("id", id, ("key", "record"), "key"),
        positions=_name(options, "positions", positions),
        limits=BatchLimits(
            rows=options.whole("rows", rows, _ROWS, least=1, most=10_000),
            size=options.size("size", size, _SIZE),
            span=options.positive_span("every", every, _SPAN),
        ),
        problems=tuple(problems),
    )


def _name(options: ConnectorOptions, option: str, given: Any) -> str:
    """Return the name of an index, by the rules of the server."""
    if (
        isinstance(given, str)
        and 0 < len(given.encode(errors="replace")) <= _LONGEST_NAME
        and given == given.lower()
        and given.isprintable()
        and not given.startswith(("-", "_", "+", "."))
        and _NOT_IN_NAME.isdisjoint(given)
    ):
        return given
    options.wrong(option, f"{given!r} is no name of an index", f'{option}="readings", for example')
    return "unknown"
