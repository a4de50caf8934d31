"""F27: most records have one key. The partitions that it is not on must not notice.

Seen from outside: a reader of committed records notes when each result arrives. A quiet stretch
first, then the same load again with nine times as much on one key on top.
"""

import runpy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from types import SimpleNamespace
from typing import Any

import msgspec

from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import LATEST

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("arena.py"))))

_OTHERS = 600
"""Records a second that are not on the hot key."""
_STRETCH = 20.0
_FACTOR = 3.0
_SLACK = 0.5
"""The p99 of the others may be so many times, and so many seconds more than, what it was."""


def hot_key(arena: Any, scale: float) -> dict[str, object]:
    """F27: nine records of ten have one key: other partitions keep their p99; then workers die."""
    for _ in range(3):
        arena.start()
    kit.eventually(
        lambda: (
            sum(worker.partitions for worker in arena.workers) == kit.workers.PARTITIONS
            and all(worker.partitions for worker in arena.workers)
        ),
        within=kit.PATIENCE,
        what="each worker has a partition",
    )
    seconds = _STRETCH * max(scale, 0.3)
    count = round(_OTHERS * seconds)
    with _watching(arena) as quiet:
        arena.feed(count, seconds=seconds)
        arena.heal()
    with _watching(arena) as hot:
        arena.feed(count * 10, seconds=seconds, hot=0.9)
        arena.heal(within=60)
    before, after = quiet.p99(without=hot.hot), hot.p99(without=hot.hot)
    assert after <= _FACTOR * before + _SLACK, (
        f"p99 of the others: {before:.2f}, then {after:.2f} s"
    )
    with arena.feeding(round(50_000 * scale), seconds=10 * scale, hot=0.9):
        for _ in range(2):
            arena.pause(2, 4)
            arena.chance.choice(arena.running()).kill()
            arena.start()
    return {"p99 of the others": f"{before:.2f} s, with the hot key {after:.2f} s"}


@dataclass(slots=True)
class _Arrivals:
    """Seconds from writing to being readable, by partition; ``hot``: the one of the hot key."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    hot: int = -1

    def p99(self, *, without: int) -> float:
        others = [s for number, each in self.seconds.items() if number != without for s in each]
        return quantiles(others, n=100)[98]


@contextmanager
def _watching(arena: Any) -> Iterator[_Arrivals]:
    """Note the arrival of everything that becomes readable while the block runs."""
    found, stop, ready = _Arrivals(), threading.Event(), threading.Event()

    def watch() -> None:
        batches = LogReader(arena.kafka).batches(
            arena.app.seen.topic.name, start=LATEST, follow=True, stop=stop
        )
        ready.set()
        for batch in batches:
            now = time.time()
            for raw in batch:
                id_ = msgspec.json.decode(raw.value())["id"]
                times = found.seconds.setdefault(raw.partition(), [])
                times.append(now - arena.written_at[id_])
                if raw.key() == b"hot":
                    found.hot = raw.partition()

    watcher = threading.Thread(target=watch)
    watcher.start()
    ready.wait(kit.PATIENCE)
    try:
        yield found
    finally:
        stop.set()
        watcher.join(kit.PATIENCE)
