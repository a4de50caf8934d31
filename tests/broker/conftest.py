"""A broker for the tests that take it away."""

import pytest

from penstock.testing.broker import temporary_broker


@pytest.fixture(scope="package")
def _mortal():
    with temporary_broker() as broker:
        yield broker


@pytest.fixture
def mortal_broker(_mortal):
    """Give a broker that may be killed and paused: whoever comes next finds it up again."""
    _mortal.ensure()
    return _mortal


@pytest.fixture(scope="session")
def postgres():
    """Give the one PostgreSQL of this run; databases and tables of a test have names of its own."""
    from tests.postgres_server import running_postgres

    with running_postgres() as server:
        yield server
