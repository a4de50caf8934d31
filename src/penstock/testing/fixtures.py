"""The pytest plugin: a real broker and a real Spark session, each started once per run.

It is installed with Penstock, so it loads in every pytest run of the environment. Importing it is
cheap (it loads neither the Kafka client nor Spark), and nothing starts before a test asks for it.

- ``kafka``: a :class:`~penstock.backbone.client.connection.Connection` to an embedded broker;
- ``topic``: creates topics on that broker, with names that no other test uses;
- ``spark``: a local ``SparkSession``.

If the broker or Spark dies, every further test that needs it fails at once, with the reason. A test
that uses them receives the marker ``broker`` or ``spark``, so ``-m "not broker and not spark"``
leaves out the tests that need a JVM.
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
"""For each shared fixture that was started, a function that says how it ended, or None."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker, text in _MARKERS.values():
        config.addinivalue_line("markers", f"{marker}: {text}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs."""
    for item in items:
        for fixture, (marker, _) in _MARKERS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test at once if its broker or Spark has died, instead of letting it wait."""
    needed = getattr(item, "fixturenames", ())
    for fixture, ended in _shared(item.config).items():
        if fixture in needed and (why := ended()) is not None:
            pytest.fail(f"an earlier test has lost what is shared: {why}", pytrace=False)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator["Connection"]:
    """Return a connection to one embedded broker for the whole run. Its data are deleted."""
    from penstock.testing.broker import temporary_broker

    with temporary_broker() as broker:
        _shared(request.config)["kafka"] = broker.ended
        yield broker.connection


@pytest.fixture
def topic(kafka: "Connection", request: pytest.FixtureRequest) -> "TopicFactory":
    """Return a function that creates topics with names that no other test uses."""
    from penstock.testing.broker import TopicFactory

    return TopicFactory(kafka, prefix=request.node.name)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return one local Spark session for the whole run."""
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
