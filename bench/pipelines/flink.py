"""Pipelines beside Flink SQL and hand-written PySpark: same broker, same topics, results discarded.

    python bench/pipelines/flink.py [--rounds 2] [--keys 1000] [--quick] [--json FILE]

Two works: the average and the count of each device in windows of ten seconds, state in RocksDB; and
reading JSON and computing a projection. Penstock's are its real plans, with the gate that gives the
codec's own verdict on every record. Two partitions; ``local[*]`` and parallelism 2.

Measured is the marginal rate, alike for all: each work runs over a topic of two million records
and over one of six million, from the call that starts it to its end, and what the second takes
longer is the time of four million records. Spark's batches are those of a pipeline that catches up.
Engines are warm (a run before), rounds take turns, and medians are compared. Processor time is
measured in the same way: it says what a record costs also where other work disturbs the clock.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from figures import Cost, Rate, marginal
from flinkpeer import FlinkPeer
from ground import (
    Ground,
    Load,
    Reading,
    by_hand,
    declared,
    fill,
    readings_of,
    sparked,
    windows_by_hand,
)
from pyspark.sql import DataFrame

from penstock import App, EventTime, record
from penstock.aggregates import count, mean
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.execution.plan import output_of
from penstock.pipelines.gate.reading import RECORDS_PER_BATCH, observed_name, records
from penstock.triggers import on_watermark
from penstock.windows import fixed

SIZES = {"small": 2_000_000, "large": 6_000_000}
QUICK_SHARE = 4
"""Of so many records one, where it must be quick."""
PER_WINDOW = 125_000
"""Records in a window of ten seconds."""
WORKS = ("window", "stateless")
ENGINES = ("penstock", "by hand", "flink")
PROJECTION = ["device", "celsius * 1.8D + 32D as fahrenheit", "at"]


@record(key="device")
class Fahrenheit:
    device: str
    fahrenheit: float
    at: datetime


def application() -> App:
    app = App("bench")
    out = app.stream("fahrenheit", Fahrenheit)
    for topic in SIZES:
        readings = app.stream(
            topic, Reading, partitions=2, event_time=EventTime(disorder="2s", follows="newest")
        )
        windowed = readings.window(fixed("10s"), by="device", lateness="1m").trigger(on_watermark())
        results = windowed.aggregate(celsius=mean("celsius"), readings=count())
        app.stream(f"{topic}.window", results)
        project = app.pipeline(reads=readings, writes=out, name=f"{topic}.stateless")
        project(lambda readings: readings.selectExpr(*PROJECTION))
    return app


def penstock(ground: Ground, work: str, topic: str) -> DataFrame:
    if work == "window":
        return ground.panes(f"{topic}.window.windows", per_batch=RECORDS_PER_BATCH)
    part = ground.part(f"{topic}.stateless")
    return output_of(part, _frames(ground, part))


def _frames(ground: Ground, part: Pipeline) -> Callable[..., DataFrame]:
    def frame(data: Any) -> DataFrame:
        rows = ground.topic(data.topic.name, per_batch=RECORDS_PER_BATCH)
        return records(rows, data, observed=observed_name(part.name, data))

    return frame


def hand_written(ground: Ground, work: str, topic: str) -> DataFrame:
    rows = ground.topic(topic, per_batch=RECORDS_PER_BATCH)
    return windows_by_hand(rows) if work == "window" else by_hand(rows).selectExpr(*PROJECTION)


def run(
    ground: Ground, flink: FlinkPeer, engine: str, work: str, topic: str
) -> tuple[float, float]:
    """Return the seconds that a work over a topic took, and what it burnt."""
    if engine == "flink":
        return flink.run(work, topic)
    done = ground.discard((penstock if engine == "penstock" else hand_written)(ground, work, topic))
    return done.seconds, done.cpu_seconds


def measure(rounds: int, sizes: dict[str, int], *, keys: int) -> dict[str, dict[str, Rate]]:
    app = application()
    costs: dict[tuple[str, str], list[Cost]] = {
        (work, engine): [] for work in WORKS for engine in ENGINES
    }
    with declared(app) as connection:
        for topic, size in sizes.items():
            load = Load(records=size, keys=keys, windows=size // PER_WINDOW)
            fill(connection, topic, readings_of(load))
        with sparked(app, connection) as ground, FlinkPeer(connection.bootstrap) as flink:
            for work, engine in costs:
                run(ground, flink, engine, work, "small")
            for number in range(rounds):
                for (work, engine), measured in costs.items():
                    taken = {topic: run(ground, flink, engine, work, topic) for topic in sizes}
                    seconds, burnt = (
                        {name: each[place] for name, each in taken.items()} for place in (0, 1)
                    )
                    measured.append(Cost(seconds, burnt))
                    rate = marginal(measured[-1:], sizes)
                    print(
                        f"round {number}  {work:9} {engine:8} {rate.records:10,.0f} records/s  "
                        f"{rate.cpu_microseconds:.2f} us",
                        flush=True,
                    )
    return {
        work: {engine: marginal(costs[work, engine], sizes) for engine in ENGINES} for work in WORKS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keys", type=int, default=1_000, help="how many devices there are")
    parser.add_argument("--quick", action="store_true", help="a quarter of the records")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    share = QUICK_SHARE if options.quick else 1
    sizes = {name: size // share for name, size in SIZES.items()}
    found = measure(options.rounds, sizes, keys=options.keys)
    for work, rates in found.items():
        for engine, rate in rates.items():
            print(
                f"{work:9} {engine:8} {rate.records:10,.0f} records/s "
                f"{rate.cpu_microseconds:.2f} us of processor time   "
                f"{rate.records / rates['flink'].records:.2f} of Flink, by processor time "
                f"{rates['flink'].cpu_microseconds / rate.cpu_microseconds:.2f}"
            )
    if options.json:
        plain = {
            work: {
                engine: {"records/s": rate.records, "us": rate.cpu_microseconds}
                for engine, rate in rates.items()
            }
            for work, rates in found.items()
        }
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
