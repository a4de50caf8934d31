"""Getting a connection: to the embedded broker, or to a cluster outside."""
# ruff: noqa: SLF001 - the client's own error names begin with an underscore

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.backbone.broker.broker import EmbeddedBroker
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG
from penstock.backbone.client.quietlog import same_text
from penstock.core.settings.settings import EMBEDDED, Settings
from penstock.errors import ConfigurationError
from penstock.machine.places import Places

__all__ = ["connected", "require_answer"]

_ANSWER_LIMIT = timedelta(seconds=10)


@contextmanager
def connected(
    settings: Settings, places: Places, *, note: Callable[[str], None] = lambda _: None
) -> Iterator[Connection]:
    """Give a connection to the configured cluster, once it answers.

    The embedded broker is started, or joined if it runs, and given up at the end. ``note`` gets a
    line when something takes time. Raises ConfigurationError (``kafka.unreachable``) if a cluster
    outside does not answer, and what :meth:`EmbeddedBroker.start` raises.
    """
    kafka = settings.kafka
    if kafka.bootstrap == EMBEDDED:
        note(f"starting the embedded broker in {places.broker}")
        with EmbeddedBroker(places.broker, kafka) as broker:
            yield broker.connection
    else:
        connection = Connection(kafka.bootstrap, kafka)
        require_answer(connection)
        yield connection


def require_answer(connection: Connection, *, timeout: timedelta = _ANSWER_LIMIT) -> int:
    """Return how many brokers the cluster has, or raise ConfigurationError that says why not."""
    reasons: dict[str, str] = {}

    def remember(error: KafkaError) -> None:
        # "n/m brokers are down" counts addresses, also those it was given twice: it misleads.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            reasons.setdefault(same_text(error.str()), error.str())

    limit = min(timeout, connection.settings.request_timeout)
    client = _client(connection, remember)
    try:
        return len(client.list_topics(timeout=limit.total_seconds()).brokers)
    except KafkaException as error:
        client.poll(0)  # what went wrong on the way is told only when asked for
        remember(error.args[0])
        raise ConfigurationError(
            f"Kafka at {connection.bootstrap} does not answer",
            code="kafka.unreachable",
            detail="\n  ".join(reasons.values()),
            hint="check kafka.bootstrap and the security settings: penstock doctor",
        ) from error


def _client(connection: Connection, on_error: Callable[[KafkaError], None]) -> AdminClient:
    try:
        return AdminClient(connection.client_config() | {"error_cb": on_error}, logger=LOG)
    except KafkaException as error:  # a certificate or key that the library cannot use
        raise ConfigurationError(
            f"the settings for Kafka at {connection.bootstrap} cannot be used",
            code="kafka.security",
            detail=error.args[0].str(),
            hint="run: penstock config explain kafka.security_protocol",
        ) from error
