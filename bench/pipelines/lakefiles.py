"""Files and milliseconds of a write into the lake: a file for each task, and gathered by Delta.

    python bench/pipelines/lakefiles.py [--tasks 32] [--records 2000000] [--rounds 5]

Without a broker: rows are made by so many tasks, and appended to a table as it is and to one that
is partitioned by two days. Small appends and large ones, both forms in turn, so that the load of
the machine meets both: medians of the rounds after the first.
"""

import argparse
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock import App, day, record
from penstock.core.graph.data import Lake
from penstock.pipelines.lake.snapshot import changes
from penstock.pipelines.lake.table import make_table, stored_rows
from penstock.pipelines.spark.session import local_session

SMALL = 320
FORMS = {"a file for each task": "false", "gathered": "true"}


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


def append(
    spark: SparkSession, data: Lake[Any], path: str, form: str, *, count: int, tasks: int
) -> tuple[int, float]:
    """Append rows to a table; return how many files that made, and the milliseconds."""
    columns = (
        "concat('device-', id % 1000) as device",
        "timestamp_millis(id % 2 * 86400000 + id) as at",
        "rand(7) * 40 as celsius",
    )
    rows = stored_rows(spark.range(0, count, 1, tasks).selectExpr(*columns), data)
    began = time.perf_counter()
    rows.write.format("delta").mode("append").option("optimizeWrite", FORMS[form]).save(path)
    spent = (time.perf_counter() - began) * 1000
    return changes(spark, path, limit=1)[0].metric("numFiles"), spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tables = (
        App("bench").lake("whole", Reading),
        App("bench").lake("daily", Reading, partition_by=day("at")),
    )
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        spark = local_session(Path(home) / "spark")
        for count in (SMALL, options.records):
            for data in tables:
                path = f"{home}/{data.name}"
                make_table(spark, data, path)
                found: dict[str, list[tuple[int, float]]] = {form: [] for form in FORMS}
                for _ in range(options.rounds):
                    for form, done in found.items():
                        done.append(
                            append(spark, data, path, form, count=count, tasks=options.tasks)
                        )
                for form, done in found.items():
                    files, spent = (statistics.median(each) for each in zip(*done[1:], strict=True))
                    print(
                        f"{data.name:6} {count:9,} records  {form:21} {files:4,.0f} files"
                        f" {spent:7,.0f} ms",
                        flush=True,
                    )
        spark.stop()


if __name__ == "__main__":
    main()
