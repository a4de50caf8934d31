"""Connectors beside what they stand on, in one run, without Kafka.

``python bench/connectors/run.py [--rows N]`` (a minute) measures

- the PostgreSQL sink beside a bare ``COPY`` of the same rows, appended and by key;
- changes of PostgreSQL beside a bare reader of the replication protocol, which only counts;
- files of Parquet beside pyarrow alone, which is given whole columns;
- lines of a file, per second and core.

Both sides of a ratio take turns; the figures are medians. Records are decoded before the clock
starts, as a sink gets them.
"""

import argparse
import math
import os
import runpy
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psycopg
import pyarrow as pa
from pyarrow import parquet
from tests.postgres_server import PostgresServer, running_postgres

from penstock import App, record
from penstock.connectors import (
    Row,
    files_in,
    parquet_files,
    postgres_changes,
    postgres_table,
    text_file,
)
from penstock.connectors.postgres.pgoutput import Changed, read_message

ROUNDS = 3
BATCH = 10_000


@record(key="id")
class Order:
    id: int
    customer: str
    total: float
    at: datetime


def rows_of(count: int) -> list[Row]:
    at = datetime(2026, 11, 19, tzinfo=UTC)
    orders = (Order(n, f"customer {n % 1000}", n / 7, at) for n in range(count))
    return [Row(order, b"", n) for n, order in enumerate(orders)]


def copied(server: PostgresServer, rows: list[Row]) -> float:
    """Return how many rows a second a bare COPY takes, in transactions of the sink's size."""
    server.run("DROP TABLE IF EXISTS bare")
    server.run("CREATE TABLE bare (id bigint, customer text, total float8, at timestamptz)")
    with server.connect() as connection:
        begun = time.perf_counter()
        for start in range(0, len(rows), BATCH):
            with (
                connection.transaction(),
                connection.cursor() as cursor,
                cursor.copy("COPY bare FROM STDIN") as copy,
            ):
                for row in rows[start : start + BATCH]:
                    each = row.record
                    copy.write_row((each.id, each.customer, each.total, each.at))
        return len(rows) / (time.perf_counter() - begun)


def sunk(server: PostgresServer, rows: list[Row], **options: Any) -> float:
    """Return how many rows a second the sink's writer takes."""
    server.run("DROP TABLE IF EXISTS sunk, penstock_positions")
    app = App("bench")
    made = postgres_table(
        "sunk", address=server.address, password="env:BENCH_WORD", create=True, **options
    )
    sink = app.sink("sink", made, reads=app.stream("orders", Order))
    writer = made.open(sink)
    begun = time.perf_counter()
    for start in range(0, len(rows), BATCH):
        writer.write(0, rows[start : start + BATCH], start + BATCH)
    seconds = time.perf_counter() - begun
    writer.close()
    return len(rows) / seconds


def fill(server: PostgresServer, table: str, count: int) -> None:
    made = "n, 'customer ' || n % 1000, n / 7.0, now()"
    server.run(f"INSERT INTO {table} SELECT {made} FROM generate_series(1, {count}) n")


def counted(server: PostgresServer, slot: str, count: int) -> float:
    """Return how many changes a second a reader takes that decodes messages and drops them."""
    with closing(server.connect(replication="database")) as connection:
        wire = connection.pgconn
        text = f"START_REPLICATION SLOT {slot} LOGICAL 0/0 "
        text += f"(proto_version '1', publication_names '{slot}')"
        wire.exec_(text.encode())
        found, begun = 0, time.perf_counter()
        while found < count:
            length, data = wire.get_copy_data(0)
            if length < 0:
                raise SystemExit("the stream has ended")
            if bytes(data[:1]) == b"w" and isinstance(read_message(bytes(data[25:])), Changed):
                found += 1
        return count / (time.perf_counter() - begun)


def followed(server: PostgresServer, slot: str, count: int) -> float:
    """Return how many changes a second the source takes, as far as its items."""
    made = postgres_changes(
        "followed", slot=slot, address=server.address, password="env:BENCH_WORD", snapshot=False
    )
    reading = made.open("", {"looks": {}, "lsn": 0, "index": 0})
    found, begun = 0, time.perf_counter()
    while found < count:
        found += len(reading.read())
    seconds = time.perf_counter() - begun
    reading.close()
    return count / seconds


def changes(server: PostgresServer, count: int) -> tuple[float, float]:
    """Return both speeds over the same changes."""
    server.run("DROP TABLE IF EXISTS followed")
    server.run(
        "CREATE TABLE followed (id bigint PRIMARY KEY, customer text, total float8, at timestamptz)"
    )
    for slot in ("bare", "ours"):
        server.run(f"DROP PUBLICATION IF EXISTS {slot}")
        server.run(f"CREATE PUBLICATION {slot} FOR TABLE followed")
        server.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
    fill(server, "followed", count)
    speeds = counted(server, "bare", count), followed(server, "ours", count)
    for slot in ("bare", "ours"):
        for _ in range(100):
            try:
                server.run("SELECT pg_drop_replication_slot(%s)", [slot])
                break
            except psycopg.errors.ObjectInUse:
                time.sleep(0.1)
    return speeds


def files(rows: list[Row]) -> tuple[float, float]:
    """Return how many rows a second go into files of Parquet: by pyarrow alone, and by the sink."""
    with tempfile.TemporaryDirectory() as directory:
        begun = time.perf_counter()
        for start in range(0, len(rows), 10 * BATCH):
            own = [row.record for row in rows[start : start + 10 * BATCH]]
            names = ("id", "customer", "total", "at")
            columns = {name: [getattr(each, name) for each in own] for name in names}
            with (Path(directory) / f"{start}.parquet").open("wb") as file:
                parquet.write_table(pa.table(columns), file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
        bare = len(rows) / (time.perf_counter() - begun)
        made = parquet_files(Path(directory) / "out")
        writer = made.open(App("bench").sink("s", made, reads=App("bench").stream("o", Order)))
        begun = time.perf_counter()
        for start in range(0, len(rows), 10 * BATCH):
            writer.write(0, rows[start : start + 10 * BATCH], start + 10 * BATCH)
        seconds = time.perf_counter() - begun
        writer.close()
    return bare, len(rows) / seconds


def lines(count: int) -> tuple[float, float]:
    """Return how many lines a second of processor time are read: of a file, of a directory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lines.txt"
        path.write_text("".join(f"a line of a file, number {n}\n" for n in range(count)))
        made = files_in(directory, settled="0s")
        speeds = []
        for reading in (text_file(path).open("", None), made.open("lines.txt", None)):
            begun, found = time.process_time(), 0
            while found < count:
                found += len(reading.read())
            speeds.append(count / (time.process_time() - begun))
            reading.close()
        return speeds[0], speeds[1]


def medians(measure: Callable[[], tuple[float, ...]]) -> list[float]:
    return [
        statistics.median(each) for each in zip(*(measure() for _ in range(ROUNDS)), strict=True)
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=200_000)
    count = arguments.parse_args().rows
    rows = rows_of(count)
    table = []
    with running_postgres() as server:
        os.environ["BENCH_WORD"] = server.word
        bare, appended, by_key = medians(
            lambda: (
                copied(server, rows),
                sunk(server, rows, mode="append"),
                sunk(server, rows, mode="upsert"),
            )
        )
        table += [
            ("COPY, bare", bare, 1.0, "rows/s"),
            ("sink, append", appended, appended / bare, "rows/s"),
            ("sink, by key", by_key, by_key / bare, "rows/s"),
        ]
        bare, ours = medians(lambda: changes(server, count))
        table += [
            ("bare protocol reader", bare, 1.0, "changes/s"),
            ("source of changes", ours, ours / bare, "changes/s"),
        ]
    bare, ours = medians(lambda: files(rows))
    table.append(("pyarrow, columns into Parquet", bare, 1.0, "rows/s"))
    table.append(("sink, Parquet", ours, ours / bare, "rows/s"))
    one, several = medians(lambda: lines(count))
    table.append(("lines of a file", one, math.nan, "lines/s and core"))
    table.append(("lines of the files of a directory", several, math.nan, "lines/s and core"))
    print("| what | speed | ratio |\n|---|---|---|")
    for what, speed, ratio, unit in table:
        shown = "" if math.isnan(ratio) else f"{ratio:.2f}"
        print(f"| {what} | {speed:,.0f} {unit} | {shown} |")


if __name__ == "__main__":
    main()
