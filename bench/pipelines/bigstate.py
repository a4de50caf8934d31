"""State larger than the memory that Spark is given: is the answer exact, does memory stay bounded?

    python bench/pipelines/bigstate.py [--keys 1500000] [--json FILE]

A table of every key's count and its note of 400 bytes. The heap has 512 MB, RocksDB 128 MB for all
its caches and buffers. Every key comes once and a tenth of them once more, in another order; the
table must be what a recount says. State is the bytes of keys and notes alone. Memory is the most
that Spark's process and its Python workers had resident at any time.
"""

import argparse
import json
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
from ground import Ground, declared, fill, spark_process, sparked
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.pipelines.execution.plan import output_of
from penstock.pipelines.gate.reading import records
from penstock.pipelines.sink.destination import once_writer
from penstock.pipelines.sink.rows import log_rows
from penstock.pipelines.spark.session import shuffle_partitions

HEAP = "512m"
BOUNDED = {"spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "128"}
BATCH = 500_000
AGAIN = 10
"""One key in so many comes twice."""
KEY_BYTES, NOTE_BYTES = 15, 400
LOOK_SECONDS = 0.5


@record(key="device")
class Note:
    device: str
    note: str


@record(key="device")
class Total:
    device: str
    count: int
    note: str


app = App("bigstate")
notes = app.stream("notes", Note, partitions=2)
totals = app.table("totals", Total, partitions=2)


@app.pipeline(reads=notes, writes=totals)
def totalled(notes: DataFrame) -> DataFrame:
    return notes.groupBy("device").agg(F.count("*").alias("count"), F.max("note").alias("note"))


def pairs(keys: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the notes: every key once, then some again."""
    chance = random.Random(5)
    numbers = list(range(keys))
    again = chance.sample(numbers, keys // AGAIN)
    chance.shuffle(numbers)
    for number in [*numbers, *again]:
        key = f"device-{number:08}"
        value = f'{{"device":"{key}","note":"{note_of(number)}"}}'
        yield key.encode(), value.encode()


def note_of(number: int) -> str:
    """Return the note of a key: random, so that no compression makes it small."""
    return random.Random(number).randbytes(NOTE_BYTES // 2).hex()


def is_right(key: int, found: dict[str, object], counts: dict[int, int]) -> bool:
    return found["count"] == counts.get(key, 1) and found["note"] == note_of(key)


class Memory:
    """Looks at the memory of a process and its children until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            family = [self._process, *self._process.children(recursive=True)]
            self.most = max(self.most, sum(_resident(each) for each in family))

    def end(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.most


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def run(ground: Ground, keys: int) -> tuple[float, int]:
    """Return the seconds it took, and the most memory."""

    def frame(data: Any) -> DataFrame:
        return records(ground.topic(data.topic.name, per_batch=BATCH), data)

    tasks = shuffle_partitions(ground.spark)
    rows = log_rows(output_of(ground.part("totalled"), frame), totals)
    writer = once_writer(rows, totals, ground.site, "bigstate", tasks=tasks)
    memory = Memory(spark_process())
    done = ground.run(writer.outputMode("update"), ground.checkpoint())
    (state,) = done.batches[-1].stateOperators
    if state.numRowsTotal != keys:
        raise SystemExit(f"{state.numRowsTotal} keys in the state, not {keys}")
    return done.seconds, memory.end()


def wrong_totals(connection: Connection, keys: int) -> int:
    """Return how many keys of the table are not what they must be, missing ones included."""
    chance = random.Random(5)
    counts = dict.fromkeys(chance.sample(range(keys), keys // AGAIN), 2)
    latest: dict[bytes, bytes] = {}
    for found in LogReader(connection).read("totals"):
        latest[found.key or b""] = found.value or b""
    wrong = keys - len(latest)
    for key, value in latest.items():
        number = int(key.removeprefix(b"device-"))
        wrong += not is_right(number, msgspec.json.decode(value), counts)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_500_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with declared(app) as connection:
        fill(connection, "notes", pairs(options.keys))
        with sparked(app, connection, driver_memory=HEAP, options=BOUNDED) as ground:
            seconds, memory = run(ground, options.keys)
        wrong = wrong_totals(connection, options.keys)
    found = {
        "keys": options.keys,
        "records/s": options.keys * (1 + 1 / AGAIN) / seconds,
        "state MB": options.keys * (KEY_BYTES + NOTE_BYTES) / 1e6,
        "memory MB": memory / 1e6,
        "wrong": wrong,
    }
    print("  ".join(f"{name} {value:,.0f}" for name, value in found.items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
