"""Rows of streams and tables in a real PostgreSQL: once, whatever is killed, and hostile ones too."""

import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal
from uuid import uuid4

import pytest
from tests.broker.sink_site import LIMIT_SECONDS, eventually, running

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.connectors import postgres_table
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.rules.check import verified
from penstock.errors import ConfigurationError


@record()
class Inner:
    x: int


@record(key="id")
class Order:
    id: str
    total: Decimal
    at: datetime
    day: date
    open: bool
    weight: float
    kind: Literal["new", "old"]
    seal: bytes
    lines: list[Inner]
    note: str | None = None


@record(key="id")
class Small:
    id: int
    value: str = ""


@pytest.fixture
def secret(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WORD", postgres.word)
    return {"address": postgres.address, "password": "env:TEST_POSTGRES_WORD"}


@pytest.fixture
def place():
    return f"Rows {uuid4().hex[:8]}"


def declare(kafka, app: App):
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


def send(kafka, data, *records, partition: int = 0, headers=()) -> None:
    codec = JsonCodec(data.record)
    with Producer(kafka) as producer:
        for each in records:
            producer.send(
                data.topic.name,
                key=codec.key(each),
                value=codec.encode(each),
                partition=partition,
                headers=headers,
            )


def delete(kafka, data, *keys: bytes) -> None:
    with Producer(kafka) as producer:
        for key in keys:
            producer.send(data.topic.name, key=key, value=None, partition=0)


HOSTILE = """'); DROP TABLE "x"; -- \\ \\N \t \r\n " % {} $1"""


def test_rows_of_a_table_are_made_changed_and_deleted_and_every_type_comes_back(
    kafka, topic, postgres, secret, place
):
    name = topic.name("app")
    app = App(name)
    orders = app.table(f"{name}.orders", Order, partitions=1)
    app.sink("pg", postgres_table(place, **secret, create=True, every="50ms"), reads=orders)
    graph = declare(kafka, app)
    at, open_now = datetime(2026, 11, 19, 20, 30, 0, 123456, tzinfo=UTC), True
    first = Order(
        HOSTILE,
        Decimal("1.5"),
        at,
        date(2026, 2, 28),
        open_now,
        0.1,
        "new",
        b"\0\xff\\",
        [Inner(7)],
    )
    others = [
        Order(
            f"o{n}", Decimal(n), at, date(1, 1, 1), not open_now, float(n), "old", b"", [], "é\\N"
        )
        for n in range(20)
    ]
    refused = Order("nul", Decimal(0), at, date(1, 1, 1), open_now, 0.0, "new", b"", [], "a\0b")
    send(kafka, orders, first, *others[:10], refused, *others[10:])
    query = f"SELECT * FROM \"{place}\" ORDER BY id = 'o3' DESC, length(id) DESC, id"
    with running(kafka, graph, "pg") as reports:
        eventually(lambda: reports[-1].counts.passed == 21)
        assert postgres.run(query)[1] == (
            HOSTILE, Decimal("1.5"), at, date(2026, 2, 28), open_now, 0.1, "new", b"\0\xff\\",
            [{"x": 7}], None,
        )  # fmt: skip
        delete(kafka, orders, b"o3", HOSTILE.encode(), b"never")
        send(kafka, orders, others[4], Order(**{**_fields(others[4]), "note": "changed"}))
        eventually(lambda: reports[-1].counts.passed == 26)
    left = postgres.run(f'SELECT id, note FROM "{place}" ORDER BY id')
    assert len(left) == 19
    assert ("o4", "changed") in left
    assert reports[-1].counts.dead_lettered == 1
    letters = list(LogReader(kafka).read(graph.dead_letters.name))
    assert dict(letters[0].headers)["penstock.code"] == b"sink.refused"
    assert b"NUL (0x00)" in dict(letters[0].headers)["penstock.reason"]
    assert letters[0].key == b"nul"


def _fields(row: Order) -> dict:
    return {
        name: getattr(row, name)
        for name in [each.name for each in record_type(Order).schema.fields]
    }


def test_rows_that_the_server_refuses_are_dead_letters_with_its_words_and_the_others_are_written(
    kafka, topic, postgres, secret, place
):
    name = topic.name("app")
    postgres.run(
        f"CREATE TABLE \"{place}\" (id int PRIMARY KEY, value varchar(3) CHECK (value <> 'bad'))"
    )
    app = App(name)
    small = app.stream(f"{name}.small", Small, partitions=1)
    app.sink("pg", postgres_table(place, **secret, mode="append", every="50ms"), reads=small)
    graph = declare(kafka, app)
    wrong = {3: "bad", 5: "too long", 8: "x"}
    rows = [Small(n, wrong.get(n, "ok")) for n in range(10)]
    rows[8] = Small(2**40, "x")
    send(kafka, small, *rows)
    with running(kafka, graph, "pg") as reports:
        eventually(lambda: reports[-1].counts.dead_lettered == 3)
    found = [n for (n,) in postgres.run(f'SELECT id FROM "{place}" ORDER BY id')]
    assert found == [0, 1, 2, 4, 6, 7, 9]
    reasons = [
        dict(letter.headers)["penstock.reason"].decode()
        for letter in LogReader(kafka).read(graph.dead_letters.name)
    ]
    assert len(reasons) == 3
    assert "violates check constraint" in reasons[0]
    assert "value too long for type character varying(3)" in reasons[1]
    assert "out of range for type integer" in reasons[2]


def test_a_result_that_is_taken_back_is_deleted_by_key_or_as_one_equal_row(
    kafka, topic, postgres, secret, place
):
    name = topic.name("app")
    app = App(name)
    small = app.stream(f"{name}.small", Small, partitions=1)
    for mode in ("upsert", "append"):
        made = postgres_table(f"{place}-{mode}", **secret, mode=mode, create=True, every="50ms")
        app.sink(mode, made, reads=small)
    graph = declare(kafka, app)
    back = [("penstock.withdrawn", b"true")]
    send(kafka, small, Small(1, "a"), Small(1, "a"), Small(1, "b"), Small(2, "a"))
    send(kafka, small, Small(1, "a"), Small(2, "a"), headers=back)
    send(kafka, small, Small(3, "c"))
    with running(kafka, graph, "upsert") as one, running(kafka, graph, "append") as other:
        eventually(lambda: one[-1].counts.passed == other[-1].counts.passed == 7)
    assert postgres.run(f'SELECT * FROM "{place}-upsert"') == [(3, "c")]
    rows = postgres.run(f'SELECT * FROM "{place}-append" ORDER BY id, value')
    assert rows == [(1, "a"), (1, "b"), (3, "c")]


CHILD = """
import os, signal, sys, threading
import psycopg
from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.site import Site
from penstock.connectors import postgres_table, run_sink
from penstock.connectors.postgres.writer import TableWriter
from penstock.connectors.sink import run
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.machine.places import Places

bootstrap, name, place, address, step, hits = sys.argv[1:]

def dying(at, call):
    def die(*given, **named):
        global hits
        if at == step:
            hits = int(hits) - 1
            if not hits:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return die

TableWriter._keep = dying("before the position", TableWriter._keep)
psycopg.Transaction.__exit__ = dying("before the commit", psycopg.Transaction.__exit__)

class DyingConsumer(Consumer):
    commit = dying("before the offsets", Consumer.commit)

run.Consumer = DyingConsumer

@record(key="id")
class Small:
    id: int
    value: str = ""

app = App(name)
small = app.stream(f"{name}.small", Small, partitions=2)
connector = postgres_table(place, address=address, password="env:TEST_POSTGRES_WORD",
                           mode="append", rows=100, every="100ms")
app.sink("pg", connector, reads=small)
connection = Connection(bootstrap=bootstrap, settings=KafkaSettings(bootstrap=bootstrap))
run_sink(app.graph, "pg", Site(settings=Settings(), places=Places("."), connection=connection,
                               stop=threading.Event(), report=lambda report: None))
"""


def test_killing_the_sink_or_the_server_at_any_step_loses_and_doubles_no_row(
    kafka, topic, postgres, secret, place
):
    name = topic.name("app")
    postgres.run(f'CREATE TABLE "{place}" (id bigint, value text)')
    app = App(name)
    small = app.stream(f"{name}.small", Small, partitions=2)
    made = postgres_table(place, **secret, mode="append", rows=100, every="100ms")
    app.sink("pg", made, reads=small)
    graph = declare(kafka, app)
    for number in (0, 1):
        rows = (Small(2 * n + number) for n in range(1_000))
        send(kafka, small, *rows, partition=number)
    steps = [
        ("before the position", 2),
        ("before the commit", 3),
        ("before the offsets", 2),
    ]
    for step, hits in steps:
        given = [kafka.bootstrap, name, place, postgres.address, step, str(hits)]
        died = subprocess.run(
            [sys.executable, "-c", CHILD, *given], check=False, timeout=LIMIT_SECONDS
        )
        assert died.returncode == -signal.SIGKILL, step
    count = f'SELECT count(*) FROM "{place}"'
    assert 0 < postgres.run(count)[0][0] < 2_000
    with running(kafka, graph, "pg") as reports:
        eventually(lambda: postgres.run(count)[0][0] == 2_000)
        postgres.kill()
        try:
            send(kafka, small, *(Small(n) for n in range(2_000, 2_100)))
            eventually(lambda: reports[-1].state == "degraded")
            assert "PostgreSQL" in reports[-1].reason
        finally:
            postgres.start()
        eventually(lambda: postgres.run(count)[0][0] == 2_100)
        eventually(lambda: reports[-1].state == "running")
    assert sorted(n for (n,) in postgres.run(f'SELECT id FROM "{place}"')) == list(range(2_100))


def test_a_second_run_waits_and_a_table_that_does_not_fit_is_told_with_what_it_lacks(
    kafka, topic, postgres, secret, place
):
    name = topic.name("app")
    app = App(name)
    small = app.stream(f"{name}.small", Small, partitions=1)
    made = postgres_table(place, **secret, create=True)
    sink = app.sink("pg", made, reads=small)
    graph = declare(kafka, app)
    assert "will be made" in made.attempt(sink)
    with running(kafka, graph, "pg") as first:
        eventually(lambda: first[-1].state == "running")
        eventually(lambda: postgres.run("SELECT to_regclass(%s)", [f'"{place}"']) != [(None,)])
        with running(kafka, graph, "pg") as second:
            eventually(lambda: "another run of pg" in second[-1].reason)
    assert "is there" in made.attempt(sink)
    postgres.run(f'ALTER TABLE "{place}" DROP COLUMN value')
    with pytest.raises(ConfigurationError, match="it has no column 'value'"):
        made.attempt(sink)


def test_a_wrong_password_is_told_and_never_shown(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WRONG", "open sesame")
    app = App("shop")
    made = postgres_table("x", address=postgres.address, password="env:TEST_POSTGRES_WRONG")
    sink = app.sink("pg", made, reads=app.stream("small", Small))
    with pytest.raises(ConfigurationError, match="authentication failed") as raised:
        made.attempt(sink)
    assert "sesame" not in str(raised.value) + repr(made)
    assert os.environ["TEST_POSTGRES_WRONG"] not in made.describe()
