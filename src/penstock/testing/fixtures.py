"""The pytest plugin: a real broker and a real Spark session, each started once per run.

Installed with Penstock, so it loads in every pytest run of the environment: importing it costs
nothing (no Kafka client, no Spark), and nothing starts before a test asks for it.

- ``kafka``: a :class:`~penstock.backbone.connection.Connection` to an embedded broker;
- ``topic``: makes topics with names of their own on that broker;
- ``spark``: a local ``SparkSession``.

A test that uses them is marked ``broker`` or ``spark``, so ``-m "not broker and not spark"``
leaves out what needs a JVM.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.backbone.connection import Connection
    from penstock.testing.broker import TopicFactory

__all__ = ["kafka", "pytest_collection_modifyitems", "pytest_configure", "spark", "topic"]

_MARKERS = {
    "kafka": ("broker", "needs the embedded Kafka broker"),
    "spark": ("spark", "needs a Spark session"),
}


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, also where unknown markers are errors."""
    for marker, text in _MARKERS.values():
        config.addinivalue_line("markers", f"{marker}: {text}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs."""
    for item in items:
        for fixture, (marker, _) in _MARKERS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def kafka() -> Iterator["Connection"]:
    """Give a connection to one embedded broker for the whole run; its data are thrown away."""
    from penstock.testing.broker import temporary_broker

    with temporary_broker() as broker:
        yield broker.connection


@pytest.fixture
def topic(kafka: "Connection", request: pytest.FixtureRequest) -> "TopicFactory":
    """Give a maker of topics whose names no other test shares."""
    from penstock.testing.broker import TopicFactory

    return TopicFactory(kafka, prefix=request.node.name)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Give one local Spark session for the whole run."""
    from penstock.pipelines.session import local_session

    session = local_session()
    yield session
    session.stop()
