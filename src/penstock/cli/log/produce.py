"""``penstock topics produce``: records from arguments or JSON lines onto a topic.

Every line is either sent or reported with its number and the reason; ``--rejects`` keeps the
reported lines whole.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.session import Session
from penstock.core.graph.data import OnLog
from penstock.core.hints import did_you_mean
from penstock.core.records.codec import JsonCodec
from penstock.core.topic import Partitioning
from penstock.errors import ConfigurationError, DataError

__all__ = ["add_produce", "key_of_fields"]

_SHOWN_CHARACTERS = 200
_SHOWN_LINES = 20

Prepare = Callable[[bytes], tuple[bytes | None, bytes]]
"""From a line to key and value; DataError where it is no record."""


@dataclass(frozen=True, slots=True)
class _Rejected:
    line: int
    code: str
    reason: str
    text: str


class _Rejects:
    """The lines that were not sent: counted, the first ones displayed, all saved in a file."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self.count = 0
        self.first: list[_Rejected] = []
        self._file = file

    def add(self, number: int, line: bytes, error: DataError) -> None:
        self.count += 1
        if len(self.first) < _SHOWN_LINES:
            text = line.decode(errors="backslashreplace")
            if len(text) > _SHOWN_CHARACTERS:
                text = f"{text[:_SHOWN_CHARACTERS]}…"
            self.first.append(_Rejected(number, error.code, error.message, text))
        if self._file is not None:
            self._file.write(line + b"\n")


def add_produce(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("topic", metavar="TOPIC", help="the name of a topic")
    parser.add_argument(
        "values",
        metavar="JSON",
        nargs="*",
        help="the records to write; default: the lines of standard input",
    )
    parser.add_argument("--key", help="the key of all records")
    parser.add_argument(
        "--rejects", type=Path, metavar="FILE", help="save the lines that were not sent"
    )
    add_app(parser, flag=True, text="validate and key records by the types of this application")
    add_json(parser)
    command(parser, _produce)


def _produce(session: Session) -> int:
    arguments = session.arguments
    data = _data(session) if arguments.app is not None else None
    if not arguments.values and sys.stdin.isatty():
        session.terminal.note("write one JSON record per line; Ctrl-D ends")
    sent = 0
    with ExitStack() as stack:
        connection = stack.enter_context(session.connected())
        from penstock.backbone.log.producer import Producer
        from penstock.backbone.topics.topics import Topics

        Topics(connection).describe(arguments.topic)
        prepare = _by_type(data) if data else _by_schema(connection, arguments.topic)
        partition: Partitioning = data.topic.partitioning if data else "key"
        file = stack.enter_context(arguments.rejects.open("wb")) if arguments.rejects else None
        rejects = _Rejects(file)
        producer = stack.enter_context(Producer(connection))
        for number, line in _lines(arguments.values):
            try:
                key, value = prepare(line)
            except DataError as error:
                rejects.add(number, line, error)
                continue
            given = key if arguments.key is None else arguments.key.encode(errors="surrogateescape")
            producer.send(arguments.topic, key=given, value=value, partition=partition)
            sent += 1
    return _report(session, sent, rejects)


def _lines(values: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield what is to be sent with its number; empty lines are nothing."""
    lines: Iterable[bytes] = [
        value.encode(errors="surrogateescape") for value in values
    ] or sys.stdin.buffer
    for number, line in enumerate(lines, start=1):
        if stripped := line.strip():
            yield number, stripped


def _data(session: Session) -> OnLog:
    graph, topic = session.application.graph, session.arguments.topic
    for data in graph.on_log:
        if data.name == topic:
            return data
    raise ConfigurationError(
        f"{graph.app} has no stream or table {topic!r}",
        code="topic.not-in-app",
        hint=did_you_mean(topic, [data.name for data in graph.on_log]),
    )


def _by_type(data: OnLog) -> Prepare:
    codec: JsonCodec[Any] = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)

    def prepare(line: bytes) -> tuple[bytes | None, bytes]:
        record = codec.decode(line)
        return codec.key(record), codec.encode(record)

    return prepare


def _by_schema(connection: Any, topic: str) -> Prepare:
    """Check that lines are JSON; take the key that the topic was declared with, if it was."""
    from penstock.backbone.declare import schema_versions
    from penstock.backbone.schemas import SchemaRegistry

    versions = schema_versions(SchemaRegistry(connection).get(topic))
    fields = versions[-1].key if versions else ()

    def prepare(line: bytes) -> tuple[bytes | None, bytes]:
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"not JSON: {error}", code="data.not-json") from error
        return key_of_fields(value, fields), line

    return prepare


def key_of_fields(value: Any, fields: tuple[str, ...]) -> bytes | None:
    """Return the key of a JSON object on the log; None where its topic has no key."""
    if not fields:
        return None
    if not isinstance(value, dict) or (gone := [name for name in fields if name not in value]):
        names = ", ".join(fields if not isinstance(value, dict) else gone)
        raise DataError(f"it has no {names}, the key of the topic", code="data.missing-field")
    parts = [value[name] for name in fields]
    if len(parts) > 1:
        return msgspec.json.encode(parts)
    return parts[0].encode() if isinstance(parts[0], str) else msgspec.json.encode(parts[0])


def _report(session: Session, sent: int, rejects: _Rejects) -> int:
    terminal, count = session.terminal, rejects.count
    if session.arguments.json:
        first = [msgspec.to_builtins(found) for found in rejects.first]
        terminal.json({"sent": sent, "rejected": count, "first_rejected": first})
    else:
        terminal.note(f"sent {sent} record{'' if sent == 1 else 's'} to {session.arguments.topic}")
    for found in rejects.first:
        terminal.warn(f"line {found.line}: {found.reason} [{found.code}]: {found.text}")
    if count > len(rejects.first):
        terminal.warn(f"and {count - len(rejects.first)} more")
    if count:
        terminal.failure(f"{count} line{' was' if count == 1 else 's were'} not sent")
    return 1 if count else 0
