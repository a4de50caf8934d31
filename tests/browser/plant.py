"""A small application that `penstock dev` runs, for tests that look at its console."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from penstock.cli.stopping import INTERRUPTED

__all__ = ["HOSTILE", "Plant"]

HOSTILE = '"><img src=x onerror="window.broken=1"><script>window.broken=1</script>'
"""What a page must show as it stands."""
LIMIT = 90.0
APP = """
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from penstock import App, EventTime, State, record
from penstock.aggregates import count
from penstock.connectors import text_file
from penstock.triggers import every, every_record, on_watermark
from penstock.windows import fixed, retracting

app = App("plant")

@record(key="device", time="at")
class Reading:
    device: str
    celsius: float
    at: datetime

@record(key="device")
class Seen:
    device: str
    readings: int

@record(key="device")
class Alarm:
    device: str
    text: str

readings = app.stream(
    "{name}.readings", Reading, partitions=2, event_time=EventTime(disorder="0s")
)
alarms = app.stream("{name}.alarms", Alarm)
seen = app.table("{name}.seen", Seen)

LATE = {{15.0: timedelta(seconds=3), 16.0: timedelta(hours=2)}}

def read(line: str) -> Reading:
    found = json.loads(line)
    return Reading(**found, at=datetime.now(UTC) - LATE.get(found["celsius"], timedelta()))

by_device = (
    readings.window(fixed("2s"), by="device", lateness="10s")
    .trigger(on_watermark(early=every("1s"), late=every_record()))
    .accumulate(retracting)
    .aggregate(readings=count())
)
app.stream("{name}.panes", by_device, on="services")

app.source("feed", text_file(Path(__file__).parent / "readings.jsonl", repeat=True, rate=40), into=readings, parse=read)

@app.service(reads=readings, writes=seen)
def tally(reading: Reading, total: State[int]) -> Seen:
    total.set(total.get(0) + 1)
    return Seen(reading.device, total.get(0))

@app.service(reads=readings, writes=alarms)
def watch(reading: Reading) -> Alarm | None:
    if reading.celsius > 900:
        if (Path(__file__).parent / "mended").exists():
            return None
        raise ValueError(f"{{reading.device}} cannot be so hot")
    return Alarm(reading.device, "hot") if reading.celsius > 60 else None
"""


class Plant:
    """The application in a directory, run by `penstock dev` as a process."""

    def __init__(self, directory: Path, *, name: str, bootstrap: str) -> None:
        self.directory, self.name = directory, name
        self._environment = {
            "PENSTOCK_KAFKA_BOOTSTRAP": bootstrap,
            "PENSTOCK_DEV_RESTART_BACKOFF": "200ms",
            "PENSTOCK_SERVICES_SESSION_TIMEOUT": "2s",
            "PENSTOCK_HTTP_CONSOLE_WRITES": "on",
        }
        (directory / "app.py").write_text(APP.format(name=name))
        lines = [{"device": f"device-{n % 7}", "celsius": 10.0 + n} for n in range(60)]
        lines.append({"device": HOSTILE, "celsius": 999.0})
        text = "\n".join(msgspec.json.encode(line).decode() for line in lines)
        (directory / "readings.jsonl").write_text(text + "\n")
        self.said: list[str] = []
        self.address = ""
        self.key = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it has told where its console is."""
        self._process = self._started("dev", self.said)
        self.address, self.key = self._link(self.said)

    @contextmanager
    def beside(self, verb: str) -> Iterator[str]:
        """Run another command in the directory; give where its console is."""
        said: list[str] = []
        process = self._started(verb, said)
        try:
            yield self._link(said)[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == INTERRUPTED, said

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(LIMIT)
            self._process = None

    def _started(self, verb: str, said: list[str]) -> "subprocess.Popen[str]":
        said.clear()
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", verb],
            cwd=self.directory,
            env=os.environ | self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=_read, args=[process.stderr, said], daemon=True).start()
        return process

    def _link(self, said: list[str]) -> tuple[str, str]:
        pattern = re.compile(r"the console .*is on (http://[^/]+)/#key=([\w-]+)")
        found = self.until(lambda: pattern.search("\n".join(said)))
        return str(found[1]), str(found[2])

    def kill(self, part: str) -> None:
        """Kill the process of a part."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        words = {child.pid: child.cmdline() for child in children}
        (pid,) = (pid for pid, each in words.items() if each[-2:] == ["--part", part])
        os.kill(pid, signal.SIGKILL)

    def ask(self, path: str, *, address: str = "") -> Any:
        """Return what the JSON of a path says."""
        with urllib.request.urlopen((address or self.address) + path, timeout=30) as answer:  # noqa: S310 - our own
            return msgspec.json.decode(answer.read())

    def until(self, condition: Any) -> Any:
        """Wait until something is there, and return it."""
        deadline = time.monotonic() + LIMIT
        while not (found := condition()):
            assert time.monotonic() < deadline, self.said
            threading.Event().wait(0.05)
        return found


def _read(stream: Any, said: list[str]) -> None:
    with stream:
        said.extend(line.rstrip("\n") for line in stream)
