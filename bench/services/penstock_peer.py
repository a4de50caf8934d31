"""The benchmark's work as services: ``python penstock_peer.py BOOTSTRAP APP WORK [KEY=VALUE ...]``.

Settings are those of ``services``: ``commit_interval=50ms state=disk``.
"""

import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from penstock import App, State, record, services
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.settings.keys import find_key, read_value
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.core.status.report import PartReport, encode_report
from penstock.machine.places import Places
from penstock.machine.process.garbage import collect_rarely


@record(key="device")
class Reading:
    device: str
    celsius: float
    place: str
    at: int


@record(key="device")
class Fahrenheit:
    device: str
    fahrenheit: float
    at: int


@record(key="device")
class Count:
    device: str
    count: int


def application(name: str) -> App:
    """Return the application; its names begin with ``name``, but for the input."""
    app = App(name)
    readings = app.stream("readings", Reading)
    out = app.stream(f"{name}.out", Fahrenheit)
    counts = app.stream(f"{name}.counts", Count)

    @app.service(reads=readings)
    def count(_: Reading, total: State[int]) -> None:
        total.set(total.get(0) + 1)

    @app.service(reads=readings, writes=out, delivery="at_least_once")
    def convert(reading: Reading) -> Fahrenheit:
        return Fahrenheit(reading.device, reading.celsius * 1.8 + 32, reading.at)

    @app.service(reads=readings, writes=out)
    def convert_exactly(reading: Reading) -> Fahrenheit:
        return Fahrenheit(reading.device, reading.celsius * 1.8 + 32, reading.at)

    @app.service(reads=readings, writes=counts)
    def remember(reading: Reading, last: State[str], total: State[int]) -> Count:
        seen = total.get(0) + 1
        total.set(seen)
        last.set(reading.place)
        return Count(reading.device, seen)

    return app


def main() -> None:
    bootstrap, name, work, *pairs = sys.argv[1:]
    serve(application(name), bootstrap, work, pairs)


def serve(app: App, bootstrap: str, part: str, pairs: list[str]) -> None:
    """Run one part of an application until SIGTERM, with settings as ``key=value``."""
    given = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        found = find_key(f"services.{key}")
        if found is None:
            raise SystemExit(f"there is no setting services.{key}")
        given[key] = read_value(found, text)
    settings = Settings()
    site = Site(
        settings=replace(settings, services=replace(settings.services, **given)),
        places=Places(Path.cwd()),
        connection=Connection(bootstrap, KafkaSettings(bootstrap=bootstrap)),
        stop=threading.Event(),
        report=_report,
    )
    signal.signal(signal.SIGTERM, lambda *_: site.stop.set())
    collect_rarely()  # as `penstock run` does
    services.run(app.graph, [part], site)


def _report(report: PartReport) -> None:
    os.write(sys.stdout.fileno(), encode_report(report) + b"\n")


if __name__ == "__main__":
    main()
