"""The pytest plugin: a real broker and a real Spark session, each started once per run.

Installed with Penstock, so it loads in every pytest run of the environment: importing it costs
nothing (no Kafka client, no Spark), and nothing starts before a test asks for it.

- ``kafka``: a :class:`~penstock.backbone.client.connection.Connection` to an embedded broker;
- ``topic``: makes topics with names of their own on that broker;
- ``spark``: a local ``SparkSession``.

Where the broker or Spark has ended, every further test that needs it fails at once and says so.
A test that uses them is marked ``broker`` or ``spark``, so ``-m "not broker and not spark"``
leaves out what needs a JVM.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection
    from penstock.testing.broker import TopicFactory

__all__ = [
    "kafka",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_setup",
    "spark",
    "topic",
]

_MARKERS = {
    "kafka": ("broker", "needs the embedded Kafka broker"),
    "spark": ("spark", "needs a Spark session"),
}
_Ended = Callable[[], str | None]
_SHARED = pytest.StashKey[dict[str, _Ended]]()
"""For each shared fixture that has started, what says how it ended; None while it runs."""


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test at once whose broker or Spark has ended, instead of letting it wait for it."""
    needed = getattr(item, "fixturenames", ())
    for fixture, ended in _shared(item.config).items():
        if fixture in needed and (why := ended()) is not None:
            pytest.fail(f"an earlier test has lost what is shared: {why}", pytrace=False)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator["Connection"]:
    """Give a connection to one embedded broker for the whole run; its data are thrown away."""
    from penstock.testing.broker import temporary_broker

    with temporary_broker() as broker:
        _shared(request.config)["kafka"] = broker.ended
        yield broker.connection


@pytest.fixture
def topic(kafka: "Connection", request: pytest.FixtureRequest) -> "TopicFactory":
    """Give a maker of topics whose names no other test shares."""
    from penstock.testing.broker import TopicFactory

    return TopicFactory(kafka, prefix=request.node.name)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Give one local Spark session for the whole run."""
    from penstock.machine.java.fetch import ensure_jars
    from penstock.machine.java.jars import JarSet
    from penstock.machine.packages import require_spark

    require_spark()
    ensure_jars(JarSet.SPARK)
    from penstock.pipelines.spark.session import jvm_end, local_session

    session = local_session()
    _shared(request.config)["spark"] = partial(jvm_end, session)
    yield session
    session.stop()


def _shared(config: pytest.Config) -> dict[str, _Ended]:
    return config.stash.setdefault(_SHARED, {})
