"""Test records written to a stream or table of the application, checked by its type."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.cli.console.reach import Reach
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem

__all__ = ["Producing"]

_BY = "penstock.by"
"""The header that says that a record was written by hand."""


class Producing:
    """Writes one record at a time, as ``penstock topics produce --app`` does."""

    def __init__(self, reach: Reach, tell: Callable[[str], None]) -> None:
        self._reach = reach
        self._tell = tell

    def act(self, asked: Asked) -> dict[str, Any]:
        """Write the record ``value`` of the body; return its key, and where it stands."""
        from penstock.backbone.log.transactions import TransactionalProducer

        graph, name = self._reach.application, asked.path["name"]
        data = next((each for each in graph.on_log if each.topic.name == name), None)
        if data is None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "topic.not-in-app",
                f"{graph.app} has no stream or table {name!r}",
                allowed=", ".join(each.topic.name for each in graph.on_log),
            )
        codec: JsonCodec[Any] = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
        try:
            record = codec.decode(msgspec.json.encode(asked.body.get("value")))
            key, value = codec.key(record), codec.encode(record)
        except DataError as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.code, error.message) from error
        connection = self._reach.log.connection
        with TransactionalProducer(connection, f"{graph.app}.console", tells=True) as producer:
            producer.begin()
            stands = producer.place(name, key=key, value=value, headers=[(_BY, b"console")])
            producer.settle()
            producer.commit()
        partition, offset = stands
        self._tell(f"a record was written to {name}[{partition}]@{offset}, from the console")
        return {
            "topic": name,
            "partition": partition,
            "offset": offset,
            "key": None if key is None else key.decode(errors="backslashreplace"),
        }
