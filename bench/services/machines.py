"""The machines of joins alone, in memory: ``python bench/services/machines.py``.

Records arrive in moments of 2,000; after each moment the state is written, as a commit does. What
is measured is the machine: no codec, no broker, no changelog. Prints records per second of
processor time, and how many bytes of state were written for each record.
"""

import argparse
import gc
import random
from collections.abc import Iterator
from datetime import timedelta
from time import process_time
from typing import Any

from penstock import App, record
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore

MOMENT = 2_000


@record(key="device", time="at")
class Reading:
    device: str
    at: int
    celsius: float
    site: str


@record(key="device", time="at")
class Setting:
    device: str
    at: int
    limit: float


class CountingStore(MemoryStore):
    """A store that counts what is written."""

    written = 0

    def put(self, key: bytes, value: bytes) -> None:
        self.written += len(key) + len(value)
        super().put(key, value)


def readings(count: int, keys: int, *, step: float, inputs: int) -> Iterator[Arrival]:
    """Yield records, so many milliseconds apart, of random keys, to the inputs in turn."""
    chooser = random.Random(1)
    for number in range(count):
        device = f"device-{chooser.randrange(keys)}"
        at = int(number * step)
        made = Reading(device, at, number / 7, "north")
        yield Arrival(number % inputs, device.encode(), made, at * 1000, "0", number)


def settings(keys: int) -> list[Arrival]:
    """Return a row for each key."""
    return [
        Arrival(1, f"device-{n}".encode(), Setting(f"device-{n}", 0, n / 3), 0, "0", n)
        for n in range(keys)
    ]


def measure(name: str, operator: Any, arrivals: list[Arrival], rows: list[Arrival]) -> None:
    """Run one machine over all arrivals, and print what it took."""
    plan = operator.plan()
    store = CountingStore()
    machine = plan.machine(store, plan.result("results", "stream"), broadcasts={})
    if rows:
        machine.take(rows, clock=0)
        machine.flush()
    store.written = results = 0
    gc.collect()
    gc.freeze()  # what arrives would not be there all at once
    began = process_time()
    for start in range(0, len(arrivals), MOMENT):
        given = machine.take(arrivals[start : start + MOMENT], clock=start, limit=MOMENT)
        results += len(given.results)
        while machine.pending:
            results += len(machine.more(MOMENT).results)
        machine.flush()
    took = process_time() - began
    rate, written = len(arrivals) / took, store.written / len(arrivals)
    print(
        f"{name:<44} {rate:>10,.0f} records/s  {results / len(arrivals):>6.2f} results"
        f"  {written:>6.0f} bytes each"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    options = parser.parse_args()
    count = options.records
    app = App("bench")
    left, right = app.stream("left", Reading), app.stream("right", Reading)
    table = app.table("settings", Setting)
    kept = app.table("kept", Setting, history="1h")
    chosen = {"device": "device", "celsius": "left.celsius"}
    within = timedelta(seconds=10)
    pairs = left.join(right, on="device", within=within)
    selected = pairs.select(**chosen, other="right.celsius")
    wide = list(readings(count, 10_000, step=1, inputs=2))
    dense = list(readings(count, 1_000, step=1, inputs=2))
    hot = list(readings(count // 10, 1, step=1, inputs=2))
    alone = list(readings(count, 10_000, step=1, inputs=1))
    rows = settings(10_000)
    looked = left.join(table, on="device")
    measure("stream-table, 10,000 keys", looked, alone, rows)
    measure(
        "stream-table, selected",
        looked.select(**chosen, limit="settings.limit"),
        alone,
        rows,
    )
    measure("stream-table as of a time", left.join(kept, on="device"), alone, rows)
    measure("stream-stream within 10 s, 10,000 keys", pairs, wide, [])
    measure("the same, selected", selected, wide, [])
    measure(
        "stream-stream left", left.join(right, on="device", how="left", within=within), wide, []
    )
    measure("stream-stream within 10 s, 1,000 keys", selected, dense, [])
    far = timedelta(milliseconds=1)
    measure(
        "stream-stream, one key, 10,000 rows in it",
        left.join(right, on="device", before=-timedelta(seconds=9), after=within),
        hot,
        [],
    )
    measure("stream-stream, one key, narrow", left.join(right, on="device", within=far), hot, [])


if __name__ == "__main__":
    main()
