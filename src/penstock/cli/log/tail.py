"""``penstock topics tail``: the records of a topic from anywhere, filtered, followed."""

import argparse
from collections.abc import Callable, Iterator
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from penstock.backbone.topics.range import Last, Start
from penstock.cli.arguments import add_app, add_json, command, read_count
from penstock.cli.log.conditions import Holds, read_condition
from penstock.cli.moments import START_HELP, read_start
from penstock.cli.records import Columns, Shown, as_json, by_type, plainly, text_of
from penstock.cli.session import Session
from penstock.cli.stopping import Stop, stop_on_signals
from penstock.core.graph.data import OnLog
from penstock.core.hints import did_you_mean
from penstock.core.matching.linear import linear_search
from penstock.core.records.record import RecordType, record_of
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["add_tail"]

_DEFAULT_LAST = 10
_LIMIT_HELP = "the newest N; with --from or --follow, stop after N"
_WHERE_HELP = (
    "only records for which this is true: an expression, such as \"count > 2 and word <> 'the'\","
    " or FIELD=VALUE (repeatable)"
)


def add_tail(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("topic", metavar="TOPIC", help="the name of a topic")
    parser.add_argument("--from", dest="start", type=read_start, default=None, help=START_HELP)
    parser.add_argument("--follow", "-f", action="store_true", help="wait for new records")
    parser.add_argument("--limit", "-n", type=read_count, metavar="N", help=_LIMIT_HELP)
    parser.add_argument(
        "--partition",
        type=int,
        action="append",
        metavar="P",
        help="only this partition (repeatable)",
    )
    parser.add_argument("--key", help="only records with this key")
    parser.add_argument(
        "--grep", type=_pattern, metavar="REGEX", help="only records whose key or value matches"
    )
    parser.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help=_WHERE_HELP
    )
    parser.add_argument("--headers", action="store_true", help="also show the headers")
    parser.add_argument(
        "--raw", action="store_true", help="write the bytes of the values, one per line"
    )
    parser.add_argument(
        "--uncommitted", action="store_true", help="also show records of uncommitted transactions"
    )
    add_app(parser, flag=True, text="decode and check records by the types of this application")
    add_json(parser)
    command(parser, _tail)


def _pattern(text: str) -> Callable[[str], bool]:
    try:
        return linear_search(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None


def _tail(session: Session) -> int:
    data = _declared(session)
    decode = by_type(data) if data is not None else plainly
    write = _writer(session)
    with stop_on_signals() as stop, session.connected() as connection:
        from penstock.backbone.log.reader import LogReader

        arguments = session.arguments
        conditions = _conditions(arguments, data, connection)
        records = LogReader(connection).read(
            arguments.topic,
            start=_start(arguments),
            partitions=arguments.partition,
            follow=arguments.follow,
            committed=not arguments.uncommitted,
            stop=stop.event,
            when_trimmed="skip",
        )
        found = (shown for shown in map(decode, records) if _wanted(arguments, conditions, shown))
        for shown in _until(_limited(found, arguments), stop):
            write(shown)
        return stop.exit_code


def _start(arguments: argparse.Namespace) -> Start:
    if arguments.start is not None:
        return arguments.start  # type: ignore[no-any-return] # argparse has read it
    return Last(_DEFAULT_LAST if arguments.follow else arguments.limit or _DEFAULT_LAST)


def _limited(found: Iterator[Shown], arguments: argparse.Namespace) -> Iterator[Shown]:
    """Give the requested number of records: the first, or the newest if no start was given."""
    if arguments.limit is None or arguments.start is not None or arguments.follow:
        return islice(found, arguments.limit)
    numbered = ((_written_at(shown), number, shown) for number, shown in enumerate(found))
    newest = nlargest(arguments.limit, numbered, key=itemgetter(0, 1))
    return (shown for _, _, shown in reversed(newest))


def _written_at(shown: Shown) -> float:
    at = shown.record.timestamp_at
    return at.timestamp() if at else 0.0


def _until(found: Iterator[Shown], stop: Stop) -> Iterator[Shown]:
    """Give records until the end is asked for, also in the middle of a batch."""
    for shown in found:
        yield shown
        if stop.event.is_set():
            return


def _declared(session: Session) -> OnLog | None:
    """Return the stream or table that the topic holds in ``--app``; None for any other topic."""
    if session.arguments.app is None:
        return None
    graph = session.application.graph
    for data in graph.on_log:
        if data.name == session.arguments.topic:
            return data
    if session.arguments.topic in {spec.name for spec in graph.topics()}:
        return None
    raise ConfigurationError(
        f"{graph.app} has no stream or table {session.arguments.topic!r}",
        code="topic.not-in-app",
        hint=did_you_mean(session.arguments.topic, [data.name for data in graph.on_log]),
    )


def _conditions(
    arguments: argparse.Namespace, data: OnLog | None, connection: "Connection"
) -> list[Holds]:
    if not arguments.where:
        return []
    record = data.record if data is not None else _stored_type(arguments.topic, connection)
    return [read_condition(text, record) for text in arguments.where]


def _stored_type(topic: str, connection: "Connection") -> RecordType[Any] | None:
    """Return the type that the topic was declared with last, None if nobody declared it."""
    from penstock.backbone.declare import schema_versions
    from penstock.backbone.schemas import SchemaRegistry

    versions = schema_versions(SchemaRegistry(connection).get(topic))
    return record_of(versions[-1]) if versions else None


def _writer(session: Session) -> Callable[[Shown], None]:
    terminal = session.terminal
    if session.arguments.raw:
        return lambda shown: terminal.raw(shown.record.value or b"")
    if session.arguments.json:
        return lambda shown: terminal.json_line(as_json(shown))
    return Columns(terminal, headers=session.arguments.headers).write


def _wanted(arguments: argparse.Namespace, conditions: list[Holds], shown: Shown) -> bool:
    record = shown.record
    # A key that is no text is typed as the bytes that it has.
    wanted = None if arguments.key is None else arguments.key.encode(errors="surrogateescape")
    if wanted is not None and record.key != wanted:
        return False
    if arguments.grep is not None:
        texts = (text_of(record.key), text_of(record.value))
        if not any(arguments.grep(text) for text in texts):
            return False
    return all(holds(shown) for holds in conditions)
