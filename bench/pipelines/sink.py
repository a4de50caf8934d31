"""The exactly-once sink beside Spark's own Kafka sink: one Spark, one broker, the same pipeline.

    python bench/pipelines/sink.py [--records 2000000] [--rounds 3] [--json FILE]

Each contender reads every record there is (``availableNow``), decodes it, checks and encodes its
output and writes it to Kafka. Speed is that of the batches after the first, which pays for warming
up. Then batches of a hundred records, where what a batch costs by itself is all there is: the
median time of a batch.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ground import Ground, Timed, declared, fill, sparked
from pyspark.sql import DataFrame

from penstock import App, record
from penstock.pipelines.execution.plan import output_of
from penstock.pipelines.gate.reading import records
from penstock.pipelines.sink.destination import once_writer, stream_writer
from penstock.pipelines.sink.kafka import Continued
from penstock.pipelines.sink.rows import log_rows
from penstock.pipelines.spark.session import shuffle_partitions

BATCH = 500_000
SMALL_BATCH, SMALL_BATCHES = 100, 60


@record(key="device")
class Reading:
    device: str
    celsius: float
    site: str
    level: int


app = App("bench")
readings = app.stream("readings", Reading, partitions=2)
few = app.stream("few", Reading, partitions=2)
copies = app.stream("copies", Reading, partitions=2)


@app.pipeline(reads=readings, writes=copies)
def copied(readings: DataFrame) -> DataFrame:
    return readings


@app.pipeline(reads=few, writes=copies)
def copied_few(few: DataFrame) -> DataFrame:
    return few


def spark_sink(output: DataFrame, ground: Ground, _checkpoint: str) -> Any:
    return stream_writer(output, copies, ground.site)


def once_sink(output: DataFrame, ground: Ground, checkpoint: str) -> Any:
    tasks = shuffle_partitions(ground.spark)
    # A name of its own for each run: another query of that name would have written its batches.
    name = f"bench{ground.runs}"
    past = Continued(name=name, checkpoint=checkpoint)
    return once_writer(log_rows(output, copies), copies, ground.site, name, tasks=tasks, past=past)


SINKS: dict[str, Callable[[DataFrame, Ground, str], Any]] = {
    "Spark's own": spark_sink,
    "exactly once": once_sink,
}


def copy(ground: Ground, part: str, sink: str, *, per_batch: int) -> Timed:
    def frame(data: Any) -> DataFrame:
        return records(ground.topic(data.topic.name, per_batch=per_batch), data)

    checkpoint = ground.checkpoint()
    writer = SINKS[sink](output_of(ground.part(part), frame), ground, str(checkpoint))
    return ground.run(writer, checkpoint)


def values(count: int) -> Iterator[tuple[bytes, bytes]]:
    for number in range(count):
        key = f"device-{number % 1000}"
        value = (
            f'{{"device":"{key}","celsius":{number % 4000 / 100},"site":"north","level":{number}}}'
        )
        yield key.encode(), value.encode()


def small_batch_milliseconds(done: Timed) -> float:
    """Return what a batch of a few records takes, the first ten left out."""
    return float(
        statistics.median(each.durationMs["triggerExecution"] for each in done.batches[10:])
    )


def measure(count: int, rounds: int) -> dict[str, dict[str, float]]:
    speeds: dict[str, list[float]] = {name: [] for name in SINKS}
    small: dict[str, float] = {}
    with declared(app) as connection:
        fill(connection, "readings", values(count))
        fill(connection, "few", values(SMALL_BATCH * SMALL_BATCHES))
        with sparked(app, connection) as ground:
            for number in range(rounds):
                for name in SINKS:
                    per_batch = min(BATCH, count // 3)
                    speed = copy(ground, "copied", name, per_batch=per_batch).speed
                    speeds[name].append(speed)
                    print(f"round {number}  {name:12} {speed:10,.0f} records/s", flush=True)
            for name in SINKS:
                done = copy(ground, "copied_few", name, per_batch=SMALL_BATCH)
                small[name] = small_batch_milliseconds(done)
                print(f"batches of {SMALL_BATCH}  {name:12} {small[name]:.0f} ms", flush=True)
    return {
        name: {"records/s": statistics.median(found), "ms per small batch": small[name]}
        for name, found in speeds.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.records, options.rounds)
    first = found["Spark's own"]["records/s"]
    for name, figures in found.items():
        speed = figures["records/s"]
        print(f"{name:12} {speed:10,.0f} records/s  {speed / first:.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
