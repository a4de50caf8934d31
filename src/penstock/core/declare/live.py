"""The method of `App` that declares live queries."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.core.declare.declarations import Declarations
from penstock.core.declare.leases import leases
from penstock.core.declare.parts import DeclaresParts
from penstock.core.graph.data import Stream, Table
from penstock.core.grid.livequeries import LEASE, MOST_ROWS, LiveQueries
from penstock.core.grid.messages import ASKED, PLACED
from penstock.core.grid.operators import Cells, Results
from penstock.core.hints import did_you_mean
from penstock.core.live.written.text import filter_of_text
from penstock.core.options import Options
from penstock.core.place import caller
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Scalar
from penstock.core.topic import TopicSpec
from penstock.errors import DataError, Place

__all__ = ["DeclaresLiveQueries"]

_KEPT = timedelta(hours=1)
"""How long what goes between the parts stays on the log: a client may come back so much later."""
_LARGEST = 32 << 20
_BESIDE = 1 << 16
"""What a message has beside a document, which is escaped in it."""


class DeclaresLiveQueries(DeclaresParts):
    """Declares live queries, with the services that do their work."""

    def live_queries(
        self,
        name: str,
        table: Table[Any],
        *,
        document: str | None = None,
        rows: int = 1,
        lease: str | timedelta = LEASE,
        rule: str = "",
    ) -> LiveQueries:
        """Declare that clients may follow queries over a table.

        Whoever follows a query gets its result, and then each change of it. Services do the work,
        on a grid in which each write meets each query once: its columns are the partitions of the
        table, and ``rows`` divides the queries.

        Args:
            name: The name of the live queries; their topics and services begin with it.
            table: The table. A document is a row with its key as ``_id``.
            document: A text field that holds the document as JSON, in place of the row.
            rows: How many groups the queries are divided into.
            lease: A query that nobody has renewed for so long is closed.
            rule: Which rows a caller of a gateway may see: ``"owner = claims.sub or shared"``. It
                is a filter as text, in which ``claims`` are those of the caller's token.

        Examples:
            >>> follow = app.live_queries("follow", hot)
            >>> follow.news.name, follow.columns
            ('follow.news', 2)
        """
        place = caller()
        options = self._declared.options("live queries", name, place)
        name, count = options.name(name), _rows(rows, options)
        span = options.span("lease", lease, LEASE)
        known = self._table(name, table, options)
        field = _text_field(known, document, options)

        grid = _Grid(self._declared, name, known, place)
        asked = grid.stream(f"{name}.asked", ASKED)
        placed = grid.placed(count)
        self.service(reads=asked, writes=placed, name=f"{name}.leases")(
            leases(placed, known.topic.partitions, span)
        )
        matched = grid.matched(placed, field)
        results = Results(matched=matched, columns=known.topic.partitions, place=place)
        return LiveQueries(
            name=name,
            table=known,
            document=field,
            asked=asked,
            news=grid.filled(f"{name}.news", results),
            rows=count,
            lease=span,
            rule=_rule(rule, options),
            place=place,
        )

    def _table(self, name: str, given: Any, options: Options) -> Table[Any]:
        """Return the table; in place of anything else, which is reported, an empty one."""
        if isinstance(given, Table):
            return given
        shown = getattr(given, "name", given)
        tables = [data.name for data in self._declared.data if isinstance(data, Table)]
        hint = did_you_mean(str(shown), tables)
        options.wrong("table", f"{shown!r} is not a table", hint, code="live.table")
        record = replace(ASKED)
        return Table(name=f"{name}.table", record=record, topic=TopicSpec(name=f"{name}.table"))


class _Grid:
    """Declares the streams between the parts, each with as many partitions as the table."""

    def __init__(
        self, declared: Declarations, name: str, table: Table[Any], place: Place | None
    ) -> None:
        self._declared = declared
        self._name = name
        self._table = table
        self._columns = table.topic.partitions
        self._largest = min(_LARGEST, 4 * table.topic.max_record_bytes + _BESIDE)
        self._place = place

    def stream(self, name: str, found: RecordType[Any]) -> Stream[Any]:
        """Declare a stream of messages."""
        topic = TopicSpec(
            name=name,
            partitions=self._columns,
            partitioning="key",
            retention=_KEPT,
            max_record_bytes=self._largest,
        )
        # Silence here is no sign of the time: it must not hold back that of the table.
        time = EventTime(follows="newest")
        made = Stream(name=name, record=found, topic=topic, event_time=time, place=self._place)
        self._declared.data.append(made)
        return made

    def placed(self, rows: int) -> tuple[Stream[Any], ...]:
        """Declare for each row what says which queries it has."""
        return tuple(self.stream(f"{self._name}.row{each}.queries", PLACED) for each in range(rows))

    def matched(self, placed: tuple[Stream[Any], ...], document: str | None) -> tuple[Any, ...]:
        """Declare the rows, and the stream of what each of them tells."""
        return tuple(
            self.filled(
                f"{self._name}.row{number}",
                Cells(table=self._table, placed=queries, document=document, place=self._place),
            )
            for number, queries in enumerate(placed)
        )

    def filled(self, name: str, operator: Cells | Results) -> Stream[Any]:
        """Declare a stream and the operator that fills it."""
        made = self.stream(name, operator.plan().result(name, "stream"))
        self._declared.fill(made, operator, "services", self._place, live=True)
        return made


def _rows(given: int, options: Options) -> int:
    count = options.count("rows", given, 1)
    if count <= MOST_ROWS:
        return count
    options.wrong("rows", f"{count} is more than {MOST_ROWS}", "rows=3, for example")
    return 1


def _rule(given: Any, options: Options) -> str:
    if not isinstance(given, str):
        options.wrong("rule", f"{given!r} is no text", 'rule="owner = claims.sub"')
        return ""
    if given:
        try:
            filter_of_text(given, claims={})
        except DataError as error:
            options.wrong("rule", error.message, error.hint, code="live.rule")
    return given


def _text_field(table: Table[Any], given: str | None, options: Options) -> str | None:
    if given is None:
        return None
    fields = {field.name: field for field in table.record.schema.fields}
    if given not in fields:
        options.wrong("document", f"{table.name} has no field {given!r}", "", code="live.document")
        return None
    if fields[given].type != Scalar("text"):
        hint = "name a field of type str"
        options.wrong("document", f"{given!r} is not a text", hint, code="live.document")
        return None
    return given
