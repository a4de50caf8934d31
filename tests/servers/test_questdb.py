"""Points in a real QuestDB: read back as they were, once, also when it is killed in the middle."""

import json
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.postgres_server import free_port
from tests.servers.javaserver import JavaServer, jars, running

from penstock import App, record
from penstock.connectors import Row, influx_lines
from penstock.connectors.connector import RowsRefusedError
from penstock.testing import try_sink

AT = datetime(2026, 11, 20, tzinfo=UTC)
PATIENCE_SECONDS = 60


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float = 0.0
    count: int = 0
    good: bool = True
    price: Decimal | None = None
    text: str | None = None
    more: list[str] = []  # noqa: RUF012


class QuestDb(JavaServer):
    ready = "ping"

    def ask(self, statement: str) -> list[list[Any]]:
        query = urllib.parse.urlencode({"query": statement})
        with urllib.request.urlopen(f"{self.url}exec?{query}", timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read()).get("dataset", [])

    def rows(self, columns: str, table: str, count: int) -> list[list[Any]]:
        """Return the rows of a table as soon as there are so many; they are seen a little later."""
        pause, until = Event(), time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.ask(f"select {columns} from {table} order by timestamp")  # noqa: S608 - names of a test
            if len(found) >= count or time.monotonic() > until:
                return found
            pause.wait(0.05)


@pytest.fixture(scope="module")
def questdb() -> Iterator[QuestDb]:
    (jar,) = jars("questdb")
    port = free_port()
    environment = {
        "QDB_HTTP_BIND_TO": f"127.0.0.1:{port}",
        "QDB_HTTP_MIN_ENABLED": "false",
        "QDB_PG_ENABLED": "false",
        "QDB_LINE_TCP_ENABLED": "false",
        "QDB_TELEMETRY_ENABLED": "false",
    }
    with tempfile.TemporaryDirectory(prefix="penstock-questdb-") as directory:
        words = ["-Xmx256m", "-XX:+UseSerialGC", "-p", str(jar)]
        words += ["-m", "io.questdb/io.questdb.ServerMain", "-d", directory]
        server = QuestDb(Path(directory), f"http://127.0.0.1:{port}/", words, environment)
        with running(server):
            yield server


def opened(connector: Any) -> Any:
    app = App("shop")
    return connector.open(app.sink("s", connector, reads=app.stream("readings", Reading)))


HOSTILE = [
    ("plain", "plain"),
    ('say "no"', 'a "quoted" \\ backslash \\\\ and \\" both'),
    ("a,b=c d", "a,b=c d 5i"),
    ("ключ 🚰", "ключ 🚰 \u2028 \x01 tab\there"),
    ("#no comment", "#no comment"),
    ('\'; drop table "readings"', "'; drop table readings; --"),
    ("x" * 1_000, "y" * 20_000),
]


def test_values_are_read_back_as_they_were_whatever_is_in_them(questdb):
    given = [
        Reading(device, AT + timedelta(seconds=n), n / 3, -(2**62) + n, n % 2 == 0, text=text)
        for n, (device, text) in enumerate(HOSTILE)
    ]
    made = influx_lines(f"{questdb.url}write", measurement="hostile")
    writer = opened(made)
    writer.write(0, [Row(each, b"{}", n) for n, each in enumerate(given)], len(given))
    writer.close()
    found = questdb.rows("device, celsius, count, good, text, timestamp", "hostile", len(given))
    assert [
        Reading(d, datetime.fromisoformat(at), c, n, g, text=t) for d, c, n, g, t, at in found
    ] == [given[n] for n in range(len(given))]


def test_a_row_of_another_type_is_refused_in_the_servers_words_and_the_others_are_there(questdb):
    questdb.ask(
        "create table strict (timestamp timestamp, device symbol, celsius double, text long)"
        " timestamp(timestamp) partition by day wal dedup upsert keys(timestamp, device)"
    )
    given = [Reading(f"d{n}", AT + timedelta(seconds=n), float(n)) for n in range(8)]
    given[5] = Reading("d5", AT + timedelta(seconds=5), text="no number")
    rows = [Row(each, b"{}", n) for n, each in enumerate(given)]
    writer = opened(influx_lines(f"{questdb.url}write", measurement="strict"))
    with pytest.raises(RowsRefusedError) as refused:
        writer.write(0, rows, 8)
    assert list(refused.value.refusals) == [5]
    assert "HTTP 400" in refused.value.refusals[5]
    assert "text" in refused.value.refusals[5]
    writer.write(0, [row for row in rows if row.offset != 5], 8)
    writer.close()
    found = questdb.rows("device", "strict", 7)
    assert [device for (device,) in found] == ["d0", "d1", "d2", "d3", "d4", "d6", "d7"]


def test_with_dedup_each_record_is_there_once_although_the_server_is_killed(questdb):
    questdb.ask(
        "create table once (timestamp timestamp, device symbol, celsius double, count long,"
        " good boolean, more varchar) timestamp(timestamp) partition by day"
        " wal dedup upsert keys(timestamp, device)"
    )
    some = [Reading(f"d{n}", AT + timedelta(seconds=n), float(n)) for n in range(60)]
    deaths = iter(range(1))

    def disturb() -> None:
        for _ in deaths:
            questdb.kill()
            questdb.start()

    def outside() -> list[Reading]:
        found = questdb.rows("device, timestamp, celsius", "once", len(some))
        return [Reading(device, datetime.fromisoformat(at), c) for device, at, c in found]

    made = influx_lines(f"{questdb.url}write", measurement="once")
    try_sink(made, some, outside=outside, runs=2, disturb=disturb, clear=lambda: None)
    found = outside()
    assert len(found) == len(some)
    assert sorted(map(repr, found)) == sorted(map(repr, some))


def test_a_trial_of_the_connection_is_answered(questdb):
    app = App("shop")
    made = influx_lines(f"{questdb.url}write", measurement="tried")
    sink = app.sink("s", made, reads=app.stream("readings", Reading))
    assert made.attempt(sink) == "it takes points"
    assert questdb.ask("select count() from tables() where table_name = 'tried'") == [[0]]
