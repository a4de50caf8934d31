"""A process that runs three pipelines and dies where it is told to; see ``test_exactly_once.py``.

    python doomed_driver.py HOME BOOTSTRAP APP STEP BATCH [PIPELINE]

Everything is what Penstock runs, but for the sink, which is killed at a step of the n-th batch, of
any pipeline or of one:

- ``worker``: the Python worker, its rows sent and not committed; Spark tries the task again;
- ``sent``, ``committed``: JVM and driver, before and after a task's commit (the other task may be
  anywhere);
- ``batch``: JVM and driver, when all tasks have committed and Spark has not written that down;
- ``never``.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame

from penstock import App, EventTime, micro_batch, record
from penstock.aggregates import count
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.machine.places import Places
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.sink import destination as sinks
from penstock.pipelines.sink.kafka import OnceSink
from penstock.pipelines.sink.kafkatask import BatchTask
from penstock.triggers import every_record, on_watermark
from penstock.windows import fixed, retracting

STEPS = ("worker", "sent", "committed", "batch")


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int


@record(key="device")
class Device:
    device: str
    site: str


@record(key="site")
class Placed:
    site: str
    id: int


def application(name: str) -> App:
    app = App(name)
    readings = app.stream(
        f"{name}.readings", Reading, partitions=2, event_time=EventTime(disorder="1s")
    )
    copies = app.stream(f"{name}.copies", Reading, partitions=2)

    @app.pipeline(reads=readings, writes=copies, trigger=micro_batch(every="100ms"))
    def copied(readings: DataFrame) -> DataFrame:
        return readings

    devices = app.table(f"{name}.devices", Device)
    placed = app.stream(f"{name}.placed", Placed, partitions=2)

    @app.pipeline(reads=(readings, devices), writes=placed, trigger=micro_batch(every="100ms"))
    def located(readings: DataFrame, devices: DataFrame) -> DataFrame:
        return readings.join(devices, "device").select("site", "id")

    panes = (
        readings.window(fixed("10s"), by="device", lateness="5s")
        .trigger(on_watermark(early=every_record(), late=every_record()))
        .accumulate(retracting)
        .aggregate(readings=count())
    )
    app.stream(f"{name}.panes", panes)
    return app


@dataclass(frozen=True)
class DoomedTask(BatchTask):
    """A task that ends at a step, with the processes it was given or with its worker alone."""

    step: str = "never"
    victims: tuple[int, ...] = ()
    once: str = ""

    def commit(self, producer, name):
        if self.step in ("worker", "sent"):
            # On the log, and never to be read.
            producer._sender.flush()
            self.die()
        super().commit(producer, name)
        if self.step == "committed":
            self.die()

    def die(self):
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        for victim in self.victims or (os.getpid(),):
            os.kill(victim, signal.SIGKILL)


class DoomedSink(OnceSink):
    """A sink that ends, or has a task that ends, from its n-th batch on that has rows."""

    step, doomed, once, part = "never", 0, "", ""

    def __call__(self, rows, batch):
        if self.part not in self._output.name:
            return super().__call__(rows, batch)
        self.doomed -= 1
        if self.doomed >= 0:
            return super().__call__(rows, batch)
        jvm = SparkContext._gateway.proc.pid
        victims = () if self.step == "worker" else (jvm, os.getpid())
        self.task = partial(DoomedTask, step=self.step, victims=victims, once=self.once)
        super().__call__(rows, batch)
        if self.step == "batch":
            DoomedTask(self._output, batch, 0, victims=victims, once=self.once).die()
        return None


def doom(
    step: str, batch: int, once: Path, *, replace: Callable[[object, str, object], None] = setattr
) -> None:
    """Have what runs in this process die at a step of its n-th batch, once."""
    replace(DoomedSink, "step", step)
    replace(DoomedSink, "doomed", batch)
    replace(DoomedSink, "once", str(once))
    replace(sinks, "OnceSink", DoomedSink)


def main() -> None:
    home, bootstrap, name, step, batch, *part = sys.argv[1:]
    DoomedSink.part = "".join(part)
    doom(step, int(batch), Path(home) / f"died-{os.getpid()}")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    site = Site(
        settings=Settings(),
        places=Places(Path(home)),
        connection=Connection(bootstrap, KafkaSettings()),
        stop=stop,
        report=lambda _: None,
    )
    names = [each.name for each in application(name).graph.parts]
    run_pipelines(verified(application(name).graph), names, site)


if __name__ == "__main__":
    main()
