"""What windows of many keys cost in Python alone: CPU seconds, whatever else the machine does.

    python bench/pipelines/buckets.py [--records 200000] [--keys 10000] [--windows 10]

The records go through the very functions that Spark's workers call: combined by key and window,
taken by two buckets on pages, panes written as records. No broker, no Spark. Then so many keys are
let wait for one moment, and are given in slices.
"""

import argparse
import random
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock import App, EventTime, record
from penstock.aggregates import count, mean
from penstock.core.aggregates.count import Count
from penstock.core.panes.arrivals import Arrivals, unpack_arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.machine import PaneMachine, Windowing
from penstock.core.panes.pages import PagedStore
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.waiting import Waiting
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.panes.windows import FixedWindows
from penstock.core.rollup.resolve import Rollup
from penstock.core.rollup.wire import Destination, PaneWire
from penstock.core.wiring.panes import pane_destination, rollup_of
from penstock.pipelines.rollups.combining import BUCKET, PAYLOAD, PreShuffleCombiner
from penstock.pipelines.rollups.frame import AHEAD, CLOCK, OFFSET, PARTITION, TIME, group, value
from penstock.pipelines.rollups.gcpause import collection_paused
from penstock.pipelines.rollups.processor import DUE_KEYS, bucket_facts, outgoing
from penstock.triggers import after_count, every_record, on_watermark
from penstock.windows import fixed, retracting

BATCHES, BUCKETS, PARTITIONS = 5, (0, 1), 2
SECOND = 1_000_000
Row = tuple[int, str, float]


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


def declared(records: int, keys: int, windows: int) -> tuple[Rollup, Destination]:
    app = App("bench")
    readings = app.stream(
        "readings", Reading, partitions=2, event_time=EventTime(disorder="2s", follows="newest")
    )
    early = after_count(max(1, records // (keys * windows * 2)))
    panes = (
        readings.window(fixed("10s"), by="device", lateness="1m")
        .trigger(on_watermark(early=early, late=every_record()))
        .accumulate(retracting)
    )
    app.stream("panes", panes.aggregate(celsius=mean("celsius"), readings=count()))
    part: Any = app.graph.part("panes.windows")
    return rollup_of(part), pane_destination(app.graph, part)


def batch_of(rows: list[Row], partition: int) -> pa.Table:
    times, devices, celsius = zip(*rows, strict=True)
    size = len(rows)
    return pa.table(
        {
            PARTITION: pa.array([partition] * size, pa.int32()),
            OFFSET: pa.array(range(size), pa.int64()),
            CLOCK: pa.array([0] * size, pa.int64()),
            TIME: pa.array(times, pa.int64()),
            AHEAD: pa.array([False] * size),
            group(0): pa.array(devices),
            value(0): pa.array(celsius),
        }
    )


class Timed:
    """CPU seconds by step."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def windows(records: int, keys: int, count_of_windows: int) -> Timed:
    """Send records through combining, buckets and wire."""
    chance = random.Random(3)
    rollup, to = declared(records, keys, count_of_windows)
    span = count_of_windows * 10 * SECOND
    rows = [
        (each * span // records, f"device-{chance.randrange(keys):06}", chance.uniform(0, 40))
        for each in range(records)
    ]
    timed, stores = Timed(), {number: MemoryStore() for number in BUCKETS}
    for number in range(BATCHES):
        part = rows[number * records // BATCHES : (number + 1) * records // BATCHES]
        came: dict[int, list[bytes]] = {bucket: [] for bucket in BUCKETS}
        for partition in range(PARTITIONS):
            table = batch_of(part[partition::PARTITIONS], partition)
            with timed.step("combine"):
                for batch in PreShuffleCombiner(rollup, BUCKETS)(table.to_batches()):
                    for row in batch.to_pylist():
                        came[row[BUCKET]].append(row[PAYLOAD])
        for bucket, store in stores.items():
            with collection_paused():
                one_bucket(timed, PagedStore(store), came[bucket], rollup, to)
    return timed


def one_bucket(
    timed: Timed, store: PagedStore, came: list[bytes], rollup: Rollup, to: Destination
) -> None:
    with timed.step("take"):
        bucket = Bucket(rollup.machine(), rollup.rule, store, order=store.place)
        given = bucket.take(map(unpack_arrivals, came))
    with timed.step("flush"):
        bucket.flush()
        store.flush()
    with timed.step("write"):
        outgoing([*PaneWire(rollup, to).records(given), bucket_facts(given)])


def waiting(keys: int) -> float:
    """Return the CPU seconds until so many keys wait for one moment."""
    found, chance = Waiting("w", MemoryStore()), random.Random(1)
    names = [chance.randbytes(12) for _ in range(keys)]
    began = time.process_time()
    for name in names:
        found.add(60 * SECOND, name)
    return time.process_time() - began


def due_together(keys: int, limit: int | None) -> float:
    """Return the most megabytes that it takes to give so many windows at their end."""
    store = MemoryStore()
    machine = PaneMachine(Windowing(windows=FixedWindows(10)), Count())
    bucket = Bucket(machine, WatermarkRule(), store)
    for start in range(0, keys, DUE_KEYS):
        names = [b"%012d" % number for number in range(start, min(start + DUE_KEYS, keys))]
        bucket.take([Arrivals(clock=0, newest=1, elements={name: [(1, True)] for name in names})])
        bucket.flush()
        bucket.trim(0)
    tracemalloc.start()
    bucket.take([Arrivals(clock=0, newest=100)], limit=limit)
    while bucket.pending:
        bucket.flush()
        bucket.trim(0)
        bucket.more(limit)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--waiting", type=int, default=200_000)
    options = parser.parse_args()
    timed = windows(options.records, options.keys, options.windows)
    for step, seconds in timed.seconds.items():
        print(f"{step:8} {seconds:6.2f} s")
    print(f"{'all':8} {timed.seconds.total():6.2f} s")
    print(f"{options.waiting:,} keys wait for one moment: {waiting(options.waiting):.2f} s")
    for limit in (None, DUE_KEYS):
        print(
            f"their windows end, {limit or 'all'} at a time: "
            f"{due_together(options.waiting, limit):.0f} MB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
