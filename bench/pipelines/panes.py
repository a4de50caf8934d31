"""Windowed aggregations side by side on one Spark, one broker and the same records.

    python bench/pipelines/panes.py [--records 2500000] [--rounds 3] [--json FILE]

A hand-written PySpark window, tuned as well as we know how, is the measure of all. Speed is that of
the batches after the first, which pays for warming up. Each contender reads everything there is
(``availableNow``) and writes JSON to Kafka.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from ground import Ground, Load, Reading, declared, fill, readings_of, sparked, windows_by_hand
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, EventTime
from penstock.aggregates import count, mean
from penstock.pipelines.sink.destination import row_options
from penstock.triggers import after_count, every_record, on_watermark
from penstock.windows import fixed, retracting

BATCHES = 5
"""How many batches a run has; the first is not measured."""


def application(load: Load) -> App:
    app = App("bench")
    readings = app.stream(
        "readings", Reading, partitions=2, event_time=EventTime(disorder="2s", follows="newest")
    )
    windowed = readings.window(fixed("10s"), by="device", lateness="1m")
    results = {"celsius": mean("celsius"), "readings": count()}
    app.stream("native", windowed.trigger(on_watermark()).aggregate(**results))
    early = max(1, load.records // (load.keys * load.windows * 2))
    trigger = on_watermark(early=after_count(early), late=every_record())
    app.stream("panes", windowed.trigger(trigger).accumulate(retracting).aggregate(**results))
    return app


def hand_written(ground: Ground, per_batch: int) -> DataFrame:
    windows = windows_by_hand(ground.topic("readings", per_batch=per_batch))
    result = F.struct("device", "window.start", "window.end", "celsius", "readings")
    return windows.select(
        F.lit("native").alias("topic"),
        F.col("device").cast("binary").alias("key"),
        F.to_json(result).cast("binary").alias("value"),
    )


def penstock(name: str) -> Callable[[Ground, int], DataFrame]:
    return lambda ground, per_batch: ground.panes(f"{name}.windows", per_batch=per_batch)


CONTENDERS: dict[str, Callable[[Ground, int], DataFrame]] = {
    "by hand": hand_written,
    "native": penstock("native"),
    "panes": penstock("panes"),
}


def measure(load: Load, rounds: int, names: list[str]) -> dict[str, float]:
    speeds: dict[str, list[float]] = {name: [] for name in names}
    app = application(load)
    with declared(app) as connection:
        fill(connection, "readings", readings_of(load))
        with sparked(app, connection) as ground:
            for number in range(rounds):
                for name in names:
                    rows = CONTENDERS[name](ground, load.records // BATCHES)
                    kafka = rows.writeStream.format("kafka").options(**row_options(ground.site))
                    writer = kafka.outputMode("append")
                    done = ground.run(writer, ground.checkpoint())
                    speeds[name].append(done.speed)
                    print(f"round {number}  {name:8} {done.speed:10,.0f} records/s", flush=True)
    return {name: statistics.median(found) for name, found in speeds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=Load().records)
    parser.add_argument("--keys", type=int, default=Load().keys)
    parser.add_argument("--windows", type=int, default=Load().windows)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = Load(options.records, options.keys, options.windows)
    found = measure(load, options.rounds, options.only)
    for name, speed in found.items():
        print(f"{name:8} {speed:10,.0f} records/s  {speed / next(iter(found.values())):.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
