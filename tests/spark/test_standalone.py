"""The same application from the same command on a master that is not local: two workers, separate processes.

The executors run Python functions of the application, keep state for groups and panes, and write exactly once. One
worker is killed in the middle.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.machine.process.processes import wait_until_dead
from penstock.testing.sparkcluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

WAIT_SECONDS = 400
STOP_SECONDS = 60
START_AT = datetime(2026, 1, 1, tzinfo=UTC)
DEVICES = 7

RULES = '''
import os

def grade(celsius):
    """Return the grade, and whose worker computed it."""
    return f"{'hot' if celsius > 50 else 'mild'} {os.getppid()}"
'''

APP = """
from datetime import datetime
from pyspark.sql import functions as F
from rules import grade
from penstock import App, EventTime, record
from penstock.aggregates import count
from penstock.triggers import after_count, every_record, on_watermark
from penstock.windows import fixed, retracting

app = App("cluster")

@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: int

@record(key="device")
class Grade:
    device: str
    grade: str

@record(key="device")
class Total:
    device: str
    total: int

readings = app.stream("readings", Reading, partitions=2, event_time=EventTime(disorder="1s"))
grades = app.stream("grades", Grade)
totals = app.table("totals", Total)
windows = readings.window(fixed("10s"), by="device", lateness="1h")
trigger = on_watermark(early=after_count(5), late=every_record())
app.stream("panes", windows.trigger(trigger).accumulate(retracting).aggregate(readings=count()))

@app.pipeline(reads=readings, writes=grades)
def graded(readings):
    return readings.select("device", F.udf(grade)("celsius").alias("grade"))

@app.pipeline(reads=readings, writes=totals)
def totalled(readings):
    return readings.groupBy("device").agg(F.sum("celsius").alias("total"))
"""


class Run:
    """``penstock run`` with a master, in a process of its own."""

    def __init__(self, home: Path, kafka, master: str) -> None:
        self._home, self._kafka = home, kafka
        (home / "rules.py").write_text(RULES)
        (home / "app.py").write_text(APP)
        self.said = home / "said"
        settings = [f"home={home}", f"kafka.bootstrap={kafka.bootstrap}", f"spark.master={master}"]
        settings += ["spark.shuffle_partitions=2"]
        words = [word for each in settings for word in ("--set", each)]
        parts = [
            word for each in ("graded", "totalled", "panes.windows") for word in ("--part", each)
        ]
        with self.said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock.cli", *words, "run", str(home), *parts],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )

    def send(self, readings: list[dict]) -> None:
        with Producer(self._kafka) as producer:
            for value in readings:
                key = value["device"].encode()
                producer.send("readings", key=key, value=json.dumps(value).encode())

    def read(self, topic: str) -> list[dict]:
        return [json.loads(found.value) for found in LogReader(self._kafka).read(topic)]

    def totals(self) -> dict[str, int]:
        return {row["device"]: row["total"] for row in self.read("totals")}

    def windows(self) -> Counter:
        """Return what is left of each window's panes once what was withdrawn is taken away."""
        found: Counter = Counter()
        for row in self.read("panes"):
            sign = -1 if row["withdrawn"] else 1
            found[row["device"], row["window_start"]] += sign * row["readings"]
        return found

    def eventually(self, what: str, condition: Callable[[], bool]) -> None:
        deadline, pause = time.monotonic() + WAIT_SECONDS, threading.Event()
        while not condition():
            said = self.said.read_text(errors="replace")[-3000:]
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, f"{what}\n{said}"
            pause.wait(0.3)

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()


@pytest.fixture
def cluster(tmp_path) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path / "cluster") as found:
        yield found


@pytest.fixture
def run(tmp_path, kafka, cluster) -> Iterator[Run]:
    running = Run(tmp_path, kafka, cluster.master)
    try:
        yield running
    finally:
        running.stop()


def readings(seconds: range) -> list[dict]:
    return [
        {
            "device": f"d{second % DEVICES}",
            "at": f"{START_AT + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}",
            "celsius": second % 100,
        }
        for second in seconds
    ]


def totals_of(given: list[dict]) -> dict[str, int]:
    found: Counter = Counter()
    for each in given:
        found[each["device"]] += each["celsius"]
    return dict(found)


def windows_of(given: list[dict]) -> Counter:
    return Counter((each["device"], f"{each['at'][:-2]}0Z") for each in given)


def test_an_application_is_exact_on_two_workers_of_which_one_is_killed(run, cluster, kafka):
    run.eventually("the topics", lambda: Topics(kafka).exists("panes"))
    early, late = readings(range(3000)), readings(range(3000, 6000))
    run.send(early)
    run.eventually("totals of the first half", lambda: run.totals() == totals_of(early))
    run.eventually("grades of the first half", lambda: len(run.read("grades")) == len(early))

    (application,) = cluster.state()["activeapps"]
    assert application["cores"] == 2
    families = [psutil.Process(pid).children(recursive=True) for pid in cluster.workers]
    theirs = [each for family in families for each in family]
    # The parents of Python's workers: a worker may be gone by now, the daemon that forked it not.
    called = {int(row["grade"].split()[1]) for row in run.read("grades")}
    assert called <= {each.pid for each in theirs}, "executors call the application's functions"

    os.kill(cluster.workers[0], signal.SIGKILL)
    # The last of each device close the windows of those before.
    run.send(late)
    last = readings(range(10_000, 10_000 + DEVICES))
    run.send(last)
    given = early + late + last
    run.eventually("totals", lambda: run.totals() == totals_of(given))
    run.eventually("grades", lambda: len(run.read("grades")) == len(given))
    closed = windows_of(early + late)
    run.eventually("panes", lambda: run.windows() & closed == closed)
    assert run.windows() - windows_of(last) == closed

    assert run.stop() == 0, run.said.read_text()
    limit = timedelta(seconds=STOP_SECONDS)
    assert [each for each in theirs if not wait_until_dead(each.pid, timeout=limit)] == []
