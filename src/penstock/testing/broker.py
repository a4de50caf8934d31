"""A temporary broker and temporary topics, for tests with a real Kafka."""

import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.backbone.broker.broker import EmbeddedBroker
from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import KafkaSettings
from penstock.core.topic import TopicSpec
from penstock.machine.java.fetch import ensure_jars
from penstock.machine.java.jars import JarSet

__all__ = ["TopicFactory", "temporary_broker"]

_PREFIX_LIMIT = 80
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@contextmanager
def temporary_broker(settings: KafkaSettings | None = None) -> Iterator[EmbeddedBroker]:
    """Run an embedded broker (or the three of ``brokers=3``) in a temporary directory.

    When the block ends, the broker stops and its data are deleted. If this process is killed, the
    broker stops too, but the directory stays. The first call fetches the jars.
    """
    ensure_jars(JarSet.KAFKA)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-broker-") as directory,
        EmbeddedBroker(Path(directory), settings) as broker,
    ):
        yield broker


class TopicFactory:
    """Creates topics with unique names that begin with the name of the test.

    Calling it creates a topic and returns its name. :meth:`name` only returns a new name.
    """

    def __init__(self, connection: Connection, *, prefix: str = "test") -> None:
        self._topics = Topics(connection)
        self._prefix = _NOT_IN_A_NAME.sub("-", prefix)[:_PREFIX_LIMIT].strip("-")

    def __call__(self, label: str = "topic", **spec: Any) -> str:
        """Create a topic with the fields of a :class:`TopicSpec` and return its name."""
        declared = TopicSpec(name=self.name(label), **spec)
        self._topics.declare([declared])
        return declared.name

    def name(self, label: str = "topic") -> str:
        """Return a name that no topic has yet."""
        return f"{self._prefix}.{label}.{uuid.uuid4().hex[:8]}"
