"""A process that rebuilds the new version of an application; see ``test_rebuild.py``.

    python rebuild_driver.py HOME BOOTSTRAP APP STEP

It kills itself, JVM included, when the rebuild has come to the step.
"""

import os
import signal
import sys
import threading
from datetime import datetime
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, micro_batch, record
from penstock.aggregates import count, total
from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.machine.places import Places
from penstock.pipelines.rebuild.rebuild import Watching, rebuild_pipeline
from penstock.triggers import on_watermark
from penstock.windows import fixed


@record(key="word", time="at")
class Item:
    word: str
    number: int
    at: datetime


@record(key="word")
class Total:
    word: str
    total: int


@record(key="word")
class Longer:
    word: str
    number: int
    twice: int


def application(name: str, version: str) -> App:
    """The old version counts; the new one adds up, leaves words out, and says more."""
    new = version == "new"
    app = App(name)
    items = app.stream(f"{name}.items", Item, partitions=2)
    totals = app.table(f"{name}.totals", Total, partitions=2)
    kept = app.lake(f"{name}.kept", Longer if new else Total)
    echoes = app.stream(f"{name}.echoes", Total, partitions=2)

    @app.pipeline(reads=items, writes=totals, name="totals", trigger=micro_batch(every="200ms"))
    def count_or_add(items: DataFrame) -> DataFrame:
        if not new:
            return items.groupBy("word").agg(F.count("*").alias("total"))
        chosen = items.where("word <> 'w0'")
        return chosen.groupBy("word").agg(F.sum("number").alias("total"))

    @app.pipeline(reads=items, writes=kept, name="kept")
    def keep(items: DataFrame) -> DataFrame:
        if not new:
            return items.selectExpr("word", "number as total")
        return items.selectExpr("word", "number", "number * 2 as twice")

    @app.pipeline(reads=items, writes=echoes, name="echo")
    def echo(items: DataFrame) -> DataFrame:
        return items.selectExpr("word", "number * 10 as total" if new else "number as total")

    windowed = items.window(fixed("1m" if new else "10s"), by="word", lateness="1h")
    results = {"n": count()} | ({"numbers": total("number")} if new else {})
    every = windowed.trigger(on_watermark())
    app.table(f"{name}.windows", every.aggregate(**results), partitions=2)
    return app


def die() -> None:
    for victim in (SparkContext._gateway.proc.pid, os.getpid()):
        os.kill(victim, signal.SIGKILL)


def main() -> None:
    home, bootstrap, name, last = sys.argv[1:]
    site = Site(
        settings=Settings(),
        places=Places(Path(home)),
        connection=Connection(bootstrap, KafkaSettings()),
        stop=threading.Event(),
        report=lambda _: None,
    )
    graph = verified(application(name, "new").graph)
    declare_application(graph, site.connection, replacing=f"{name}.totals")
    watching = Watching(step=lambda step: die() if step == last else None)
    rebuild_pipeline(graph, "totals", site, watching=watching)


if __name__ == "__main__":
    main()
