"""The timers of one task alone: what a million keys take in memory, and what each timer costs.

``python bench/services/timers.py [--keys N] [--disk]`` sets one timer for each key, commits every
10,000, begins anew from where they are, and lets all of them go off. It prints resident memory
after each step, and processor time for a timer.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.core.graph.state import CallScope
from penstock.core.instants import micros
from penstock.services.state.states import States
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue

COMMIT = 10_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPREAD = 7919
"""Timers are due within so many seconds, in no order of their keys."""


class Timed:
    """The timers of a task, with the states that they are committed with."""

    def __init__(self, shelf: Any) -> None:
        self.queue = TimerQueue(TaskEventTime(()), clock=lambda: NOON, shelf=shelf)
        self.states = States(
            [], changelog="changelog", clock=lambda: NOON, timers=self.queue, shelf=shelf
        )

    def commit(self) -> list[tuple[bytes, bytes | None]]:
        found = list(self.states.changes())
        self.states.settle()
        return found


def set_all(timed: Timed, keys: int) -> Iterator[tuple[bytes, bytes | None]]:
    here = CallScope()
    for number in range(keys):
        here.key = b"device-%08d" % number
        here.undo.clear()
        due_at = NOON + timedelta(seconds=number * 31 % SPREAD)
        timed.queue.put(here, "processing", "silent", due_at, None)
        if number % COMMIT == COMMIT - 1:
            yield from timed.commit()
    yield from timed.commit()


def fire_all(timed: Timed) -> int:
    until, fired = micros(NOON + timedelta(seconds=SPREAD)), 0
    while timed.queue.pop("processing", until) is not None:
        fired += 1
        if fired % COMMIT == 0:
            timed.commit()
    timed.commit()
    return fired


def megabytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20


def run(keys: int, shelf_at: Path | None) -> None:
    shelf = None
    if shelf_at is not None:
        from penstock.services.state.shelf import open_shelf

        shelf = open_shelf(shelf_at, identity="bench")
    before = megabytes()
    timed = Timed(shelf)
    began = time.process_time()
    count = sum(1 for _ in set_all(timed, keys))
    spent = (time.process_time() - began) / keys * 1e6
    print(f"set {count}: {megabytes() - before} MB more, {spent:.1f} us each")
    if shelf is not None:
        timed = Timed(shelf)
        began = time.process_time()
        first = timed.queue.first("processing")
        seconds = time.process_time() - began
        print(f"begun anew: {len(timed.queue)} timers, first at {first}, in {seconds * 1e3:.0f} ms")
    began = time.process_time()
    fired = fire_all(timed)
    spent = (time.process_time() - began) / fired * 1e6
    print(f"fired {fired}: {megabytes() - before} MB more, {spent:.1f} us each")
    if shelf is not None:
        shelf.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--disk", action="store_true", help="keep them in RocksDB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run(options.keys, Path(directory) / "0" if options.disk else None)


if __name__ == "__main__":
    main()
