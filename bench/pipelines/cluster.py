"""A standalone master with two workers beside ``local[*]``: what it costs and how fast it is.

    python bench/pipelines/cluster.py [--records 2000000] [--json FILE]

The windowed aggregation of ``panes.py`` on Spark's own windows, its results discarded, on the same
broker and records. Executors have one core each, so both have two. Start is the time until a
session is there and its first batch done; memory is what all processes had resident at the end.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from ground import Load, declared, fill, readings_of, spark_process, sparked
from panes import BATCHES, application, penstock

from penstock.backbone.client.connection import Connection
from penstock.core.settings.settings import SparkSettings
from penstock.testing.sparkcluster import StandaloneCluster


def resident(pids: list[int]) -> int:
    """Return the memory of processes and all they have started."""
    roots = [psutil.Process(pid) for pid in pids]
    family = [each for root in roots for each in (root, *root.children(recursive=True))]
    return sum(each.memory_info().rss for each in family)


@contextmanager
def masters(name: str) -> Iterator[tuple[str, list[int]]]:
    """Give a master and the processes that belong to it."""
    if name == "local":
        yield SparkSettings().master, []
        return
    with (
        tempfile.TemporaryDirectory(prefix="penstock-cluster-") as home,
        StandaloneCluster(Path(home)) as cluster,
    ):
        yield cluster.master, cluster.processes


def measure(connection: Connection, load: Load, name: str) -> dict[str, float]:
    began = time.perf_counter()
    with masters(name) as (master, processes):
        app = application(load)
        shuffles = {"spark.sql.shuffle.partitions": "2"}
        with sparked(app, connection, master=master, options=shuffles) as ground:
            rows = penstock("native")(ground, load.records // BATCHES)
            started = time.perf_counter()
            done = ground.discard(rows)
            first = done.batches[0].durationMs["triggerExecution"] / 1000
            return {
                "records/s": done.speed,
                "start s": started - began + first,
                "memory MB": resident([spark_process(), *processes]) / 1e6,
            }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = Load(records=options.records)
    found = {}
    with declared(application(load)) as connection:
        fill(connection, "readings", readings_of(load))
        for name in ("local", "standalone"):
            found[name] = measure(connection, load, name)
            shown = "  ".join(f"{what} {value:,.0f}" for what, value in found[name].items())
            print(f"{name:11} {shown}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
