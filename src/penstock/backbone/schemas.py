"""The registry: the schema each topic was declared with, in a compacted topic of its own."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.topic import TopicSpec

__all__ = ["SCHEMA_TOPIC", "SchemaRegistry"]

SCHEMA_TOPIC = TopicSpec(
    name="_penstock.schemas", partitions=1, compacted=True, retention=None, partitioning="key"
)


class SchemaRegistry:
    """Schemas by topic; the last one written is valid.

    The topic is small (one record for each stream) and is read whole each time, so an answer is
    never older than the question. Whether a schema may follow another is not decided here.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the schema of every topic that has one."""
        found: dict[str, dict[str, Any]] = {}
        if not Topics(self._connection).exists(SCHEMA_TOPIC.name):
            return found
        for record in LogReader(self._connection).read(SCHEMA_TOPIC.name):
            topic = (record.key or b"").decode()
            if record.value is None:
                found.pop(topic, None)
            else:
                found[topic] = msgspec.json.decode(record.value, type=dict[str, Any])
        return found

    def get(self, topic: str) -> dict[str, Any] | None:
        """Return the schema of one topic, None if it was never declared."""
        return self.all().get(topic)

    def put(self, topic: str, schema: Mapping[str, Any]) -> None:
        """Write the valid schema of a topic; when this returns every reader sees it."""
        self.put_all({topic: schema})

    def put_all(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        """Write several schemas at once."""
        self._write(
            {
                topic: msgspec.json.encode(dict(each), order="sorted")
                for topic, each in schemas.items()
            }
        )

    def remove(self, topic: str) -> None:
        """Forget the schema of a topic."""
        self._write({topic: None})

    def _write(self, values: Mapping[str, bytes | None]) -> None:
        Topics(self._connection).declare([SCHEMA_TOPIC])
        with Producer(self._connection) as producer:
            for topic, value in values.items():
                producer.send(SCHEMA_TOPIC.name, key=topic.encode(), value=value)
