"""Connectors that Penstock ships pass the trials that it ships, on real servers."""

import threading
from uuid import uuid4

import psycopg
import pytest

from penstock import record
from penstock.connectors import postgres_changes, postgres_table
from penstock.testing import try_sink, try_source


@record(key="id")
class Small:
    id: int
    value: str = ""


ROWS = [Small(n, f"row {n}") for n in range(200)]


@pytest.fixture
def secret(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WORD", postgres.word)
    return {"address": postgres.address, "password": "env:TEST_POSTGRES_WORD"}


def cut_off(postgres):
    """Let the server end all connections of connectors."""
    postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name LIKE 'penstock%'"
    )


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_sink_to_postgresql_passes_the_trial(postgres, secret, mode):
    place = f"t{uuid4().hex[:8]}"
    made = postgres_table(place, **secret, mode=mode, create=True)

    def clear():
        postgres.run(f'DROP TABLE IF EXISTS "{place}"')
        if postgres.run("SELECT to_regclass('penstock_positions')") != [(None,)]:
            postgres.run("DELETE FROM penstock_positions WHERE target = %s", [place])

    try_sink(
        made,
        ROWS,
        outside=lambda: [Small(*row) for row in postgres.run(f'SELECT * FROM "{place}"')],
        clear=clear,
        disturb=lambda: cut_off(postgres),
    )


def test_a_source_of_changes_passes_the_trial(postgres, secret):
    place = f"t{uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {place} (id int PRIMARY KEY, value text)")
    slot = f"slot_{place}"
    connector = postgres_changes(place, slot=slot, **secret)
    postgres.run(f"INSERT INTO {place} SELECT n, 'x' FROM generate_series(1, 3000) n")
    found = try_source(connector, items=3_000, runs=2, disturb=lambda: cut_off(postgres))
    assert [change.now["id"] for change in found[""]] == list(range(1, 3_001))
    pause = threading.Event()
    for _ in range(200):
        try:
            postgres.run("SELECT pg_drop_replication_slot(%s)", [slot])
        except psycopg.errors.ObjectInUse:
            pause.wait(0.05)
        else:
            return
