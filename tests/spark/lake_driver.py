"""A process that writes a lake table until it is killed; see ``test_lake_deaths.py``.

python lake_driver.py HOME BOOTSTRAP APP
"""

import json
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame

from penstock import App, day, micro_batch, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import KafkaSettings, LakeSettings, Settings, SparkSettings
from penstock.machine.places import Places
from penstock.machine.process.lifeline import watch_lifeline
from penstock.pipelines.execution.engine import run_pipelines


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int


def message(number: int, at: datetime) -> tuple[bytes, bytes]:
    """Return a reading as it stands on the log."""
    stamp = at.isoformat().replace("+00:00", "Z")
    device = f"d{number % 3}"
    value = {"device": device, "at": stamp, "id": number}
    return device.encode(), json.dumps(value).encode()


def application(name: str) -> App:
    app = App(name)
    readings = app.stream(f"{name}.readings", Reading, partitions=2)
    kept = app.lake(f"{name}.kept", Reading, partition_by=day("at"))

    @app.pipeline(reads=readings, writes=kept, trigger=micro_batch(every="100ms"))
    def keep(readings: DataFrame) -> DataFrame:
        return readings.repartition(4)

    return app


SETTINGS = Settings(
    lake=LakeSettings(upkeep_interval=timedelta(seconds=1)),
    # Many small files, so that there is something to compact while it runs.
    spark=SparkSettings(options={"spark.databricks.delta.optimizeWrite.enabled": "false"}),
)


def main() -> None:
    home, bootstrap, name = sys.argv[1:]
    stop = threading.Event()
    watch_lifeline(stop.set)
    site = Site(
        settings=SETTINGS,
        places=Places(Path(home)),
        connection=Connection(bootstrap, KafkaSettings()),
        stop=stop,
        report=lambda _: None,
    )
    run_pipelines(verified(application(name).graph), ["keep"], site)


if __name__ == "__main__":
    main()
