"""A process that reads a history and the log, and dies where it is told to; see ``test_history.py``.

    python doomed_history.py HOME BOOTSTRAP APP STEP BATCH

Everything is what Penstock runs, but for the places where JVM and driver are killed (or where
pipelines of the test's own process fail):

- ``copying``: a copy of the history is complete, and where the log goes on is not written down;
- ``settled``: it is, and nothing has been read;
- ``piece``: the n-th batch is written, the history is being read, and Spark has not noted it;
- ``switch``: the history is through, which is not written down;
- ``through``: it is, and the copy is still there;
- ``live``: the n-th batch of the log is written, and Spark has not noted it;
- ``never``.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
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
from penstock.pipelines.execution import attempts
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.history import history
from penstock.pipelines.history.history import Histories
from penstock.pipelines.sink import destination
from penstock.pipelines.sink.kafka import OnceSink
from penstock.windows import fixed

STEPS = ("copying", "settled", "piece", "switch", "through", "live")
PIECE_RECORDS = 60


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int


def application(name: str) -> App:
    app = App(name)
    readings = app.stream(
        f"{name}.readings",
        Reading,
        partitions=2,
        event_time=EventTime(disorder="3s", idle_after=None),
    )
    past = app.archive(readings).then_live
    copies = app.stream(f"{name}.copies", Reading, partitions=2)

    @app.pipeline(reads=past, writes=copies, trigger=micro_batch(every="100ms"))
    def copied(readings: DataFrame) -> DataFrame:
        return readings

    counted = past.window(fixed("10s"), by="device").aggregate(n=count())
    app.table(f"{name}.panes", counted)
    return app


def kill() -> None:
    for victim in (SparkContext._gateway.proc.pid, os.getpid()):
        os.kill(victim, signal.SIGKILL)


class DoomedHistories(Histories):
    """Histories that end at a step."""

    step, die = "never", staticmethod(kill)

    def _number_pieces(self, directory):
        found = super()._number_pieces(directory)
        if self.step == "copying":
            self.die()
        return found

    def rows(self, data, **options):
        if self.step == "settled" and data.archive:
            self.die()
        return super().rows(data, **options)

    def finish(self):
        if self.step == "switch":
            self.die()
        super().finish()

    def _remove_copies(self):
        if self.step == "through":
            self.die()
        super()._remove_copies()


class DoomedSink(OnceSink):
    """A sink that ends after its n-th batch, of the history or of the log."""

    step, doomed, checkpoints, die = "never", 0, Path(), staticmethod(kill)

    def __call__(self, rows, batch):
        super().__call__(rows, batch)
        live = len(list(self.checkpoints.rglob("history-through"))) == len(("copied", "panes"))
        if self.step == ("live" if live else "piece"):
            self.doomed -= 1
            if self.doomed < 0:
                self.die()


def doom(
    step: str,
    batch: int,
    checkpoints: Path,
    *,
    die: Callable[[], None] = kill,
    replace: Callable[[object, str, object], None] = setattr,
) -> None:
    """Have what runs in this process die at a step, in its n-th batch."""
    for doomed in (DoomedHistories, DoomedSink):
        replace(doomed, "step", step)
        replace(doomed, "die", staticmethod(die))
    replace(DoomedSink, "doomed", batch)
    replace(DoomedSink, "checkpoints", checkpoints)
    replace(history, "PIECE_RECORDS", PIECE_RECORDS)
    replace(destination, "OnceSink", DoomedSink)
    replace(attempts, "Histories", DoomedHistories)


def main() -> None:
    home, bootstrap, name, step, batch = sys.argv[1:]
    places = Places(Path(home))
    doom(step, int(batch), places.checkpoints)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    site = Site(
        settings=Settings(),
        places=places,
        connection=Connection(bootstrap, KafkaSettings()),
        stop=stop,
        report=lambda _: None,
    )
    graph = verified(application(name).graph)
    run_pipelines(graph, [part.name for part in graph.parts], site)


if __name__ == "__main__":
    main()
