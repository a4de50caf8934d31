"""What a score costs: records scored a second on one core, beside the bare engine.

python bench/anomaly/scoring.py [--records N] [--rounds N]

Both read the same telemetry from memory, decode, handle and encode it, in turn, in one process. The
bare engine is a stateless service that passes each record on. The scorer remembers the past of each
of 1,000 devices and scores with a model of two kinds. Then: the bytes that a device sends in an
hour, if it is scored here and if it scores by itself.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import gc
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

sys.path[:0] = [
    str(Path(__file__).resolve().parents[2]),
    str(Path(__file__).parents[1] / "services"),
]

import msgspec
from alone import BATCH, COMMIT, Nowhere, Record
from apps.anomaly.app import Scorer, app
from apps.anomaly.application import model_versions, telemetry
from apps.anomaly.devices.device import Device, Pace
from apps.anomaly.devices.wire import FromDoor, ToDoor
from apps.anomaly.records import Command, Telemetry
from apps.anomaly.scoring import MODEL, TelemetryModel, for_kind
from apps.anomaly.training.learning import learn
from apps.anomaly.trend import Trend

from penstock.core.graph.parts import Service
from penstock.models import sealed
from penstock.services.task.task import Task

DEVICES = 1_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
passed = app.stream("bench_passed", Telemetry)


@app.service(reads=telemetry, writes=passed, delivery="at_least_once")
def bare(measured: Telemetry) -> Telemetry:
    return measured


class Versions:
    """The table of versions, as the engine holds it."""

    def __init__(self, model: TelemetryModel) -> None:
        self._rows = {b"1": sealed(MODEL, 1, model)}

    def get(self, key: bytes) -> Any:
        return self._rows.get(key)

    def values(self) -> list[Any]:
        return list(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)


def measured(count: int) -> tuple[list[Record], TelemetryModel]:
    """Return telemetry of all devices in turn, and a model that knows them."""
    devices = [
        Device(f"device-{n:04}", ("server", "drive")[n % 2], at=NOON, pace=Pace())
        for n in range(DEVICES)
    ]
    found, samples, trends = [], [], {}
    for place in range(count):
        device, second = devices[place % DEVICES], place // DEVICES
        at = NOON + timedelta(seconds=second)
        device.measure(at)
        new = device._new.pop()  # noqa: SLF001 - before it is sent
        given = Telemetry(device.name, device.kind, at, 1, second, new.metrics, new.log)
        found.append(Record("telemetry", place, device.name.encode(), msgspec.json.encode(given)))
        trend = trends.get(device.name, Trend()).after(new.metrics, new.log)
        trends[device.name] = trend
        if second >= 10:
            samples.append((device.kind, trend.features(new.metrics)))
    return found, learn(samples[:: max(len(samples) // 20_000, 1)])


def round_of(service: Service, given: list[Record], tables: Any) -> float:
    """Handle all records once; return how many a second."""
    delivery: Any = Nowhere()
    partition = ("telemetry", 0)
    task = Task(
        app.graph,
        service,
        number=0,
        starts={partition: 0},
        delivery=delivery,
        clock=lambda: NOON,
        tables=tables,
    )
    task.open()
    began = time.process_time()
    for start in range(0, len(given), BATCH):
        task.handle(partition, given[start : start + BATCH])
        if start % COMMIT == 0:
            task.commit()
    task.commit()
    return len(given) / (time.process_time() - began)


def sent(model: TelemetryModel, *, local: bool, seconds: int = 3_600) -> int:
    """Return the bytes that a healthy device sends, one measurement a second."""
    device = Device("device", "server", at=NOON, local=local, pace=Pace())
    command = Command("device", "m", "model", NOON, 1, 1, for_kind(model, "server"))
    device.told(msgspec.json.encode(FromDoor(command=command)), NOON)
    total = 0
    for second in range(seconds):
        at = NOON + timedelta(seconds=second)
        device.measure(at)
        for line in device.lines(at):
            total += len(line)
            message = msgspec.json.decode(line, type=ToDoor)
            device.told(msgspec.json.encode(FromDoor(taken=(message.started, message.number))), at)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=120_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    given, model = measured(options.records)
    gc.collect()
    gc.freeze()  # a service does not have all its input in memory to look through
    tables = {model_versions.topic.name: Versions(model)}
    best = {"bare": 0.0, "scorer": 0.0}
    for _ in range(options.rounds):
        for service in (bare, Scorer):
            best[service.name] = max(best[service.name], round_of(service, given, tables))
    for name, rate in best.items():
        print(f"{name:8} {rate:10,.0f} records a second of processor time")
    print(f"ratio    {best['scorer'] / best['bare']:10.2f}")
    here, there = (sent(model, local=local) for local in (False, True))
    share = f"if it scores by itself {there:,} ({there / here:.0%})"
    print(f"bytes of a device in an hour: {here:,}; {share}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
