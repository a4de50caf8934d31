"""``penstock query``: read-only SQL over streams, tables, states and the lake.

What can be answered from running state and from tables is; all else is a batch on Spark.
"""

import argparse
import csv
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.cli.arguments import add_app, command
from penstock.cli.moments import END_HELP, START_HELP, read_end, read_span, read_start
from penstock.cli.records import text_of
from penstock.cli.screen.partlines import count_text
from penstock.cli.session import Session
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Answer(Protocol):
        """The rows of a query, once; afterwards what it did not show."""

        @property
        def columns(self) -> list[str]: ...
        @property
        def truncated(self) -> bool: ...
        def rows(self) -> Iterator[tuple[Any, ...]]: ...
        def refused(self) -> dict[str, int]: ...


__all__ = ["register"]

_ROWS = 1000
_TIME = timedelta(minutes=10)


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument("sql", metavar="SQL", help="one SELECT in Spark's dialect")
    parser.add_argument(
        "--from", dest="start", type=read_start, default="earliest", help=f"streams: {START_HELP}"
    )
    parser.add_argument(
        "--to", dest="end", type=read_end, default="latest", help=f"streams: {END_HELP}"
    )
    parser.add_argument(
        "--limit", type=_count, default=_ROWS, metavar="N", help="return at most N rows"
    )
    parser.add_argument(
        "--time-limit",
        type=read_span,
        default=_TIME,
        metavar="10m",
        help="end the query after this time",
    )
    parser.add_argument(
        "--engine",
        choices=("auto", "running", "spark"),
        default="auto",
        help="who answers; auto: states and tables without Spark, all else by Spark",
    )
    parser.add_argument(
        "--watch", action="store_true", help="go on, and write what changes in the answer"
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="write a line of JSON for each row")
    formats.add_argument(
        "--csv", action="store_true", help="write comma-separated values with a header"
    )
    command(parser, _query)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _query(session: Session) -> None:
    from penstock.cli.log.running import answer_from_running, wants_running

    if wants_running(session):
        answer_from_running(session, write=_write, tell=_tell, value=_json_value)
        return
    session.prepare_spark()
    from penstock.pipelines.query.query import QuerySpan, ask

    arguments, graph = session.arguments, session.application.graph
    span = QuerySpan(
        start=arguments.start, end=arguments.end, rows=arguments.limit, time=arguments.time_limit
    )
    if session.terminal.draws_notes:
        session.terminal.note("asking Spark")
    with ask(graph, arguments.sql, session.loaded, session.connected, span=span) as answer:
        _write(session, answer)
        _tell(session, answer)


def _write(session: Session, answer: "Answer") -> None:
    terminal, columns = session.terminal, answer.columns
    if session.arguments.json:
        if len(set(columns)) < len(columns):
            raise ConfigurationError(
                f"two columns have one name: {', '.join(columns)}",
                code="query.columns",
                hint="give one of them another name: select ... as other",
            )
        for row in answer.rows():
            terminal.json_line(dict(zip(columns, map(_json_value, row), strict=True)))
    elif session.arguments.csv:
        writer = csv.writer(terminal.out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(_texts(row) for row in answer.rows())
    else:
        terminal.table(columns, (_cells(row) for row in answer.rows()))


def _tell(session: Session, answer: "Answer") -> None:
    if answer.truncated:
        limit = session.arguments.limit
        session.terminal.warn(
            f"there are more than these {count_text(limit)} rows; --limit N shows more"
        )
    for name, count in answer.refused().items():
        least = "at least " if answer.truncated else ""
        session.terminal.warn(
            f"{name}: {least}{count_text(count)} entries were left out: they are not valid records"
        )


def _cells(row: Iterable[Any]) -> list[Any]:
    """Return numbers as they are, for their column, and everything else as text."""
    return [value if isinstance(value, int | float) else _text(value) for value in row]


def _texts(row: Iterable[Any]) -> list[str]:
    return [_text(value) for value in row]


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return str(_json_value(value))
        case bytes():
            return text_of(value)
        case list() | dict():
            return msgspec.json.encode(_json_value(value), enc_hook=str).decode()
    return str(value)


def _json_value(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return text_of(value)
        case list():
            return [_json_value(each) for each in value]
        case dict():
            return {name: _json_value(each) for name, each in value.items()}
    return value
