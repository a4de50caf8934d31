"""Windows on both engines while everything is killed; then an independent recount."""

import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from penstock.backbone.log.producer import Producer
from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent))
from devrun import DevRun
from processes import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT_SECONDS = 150
APP = """
from datetime import datetime
from penstock import App, EventTime, record
from penstock.aggregates import count, total
from penstock.triggers import every_record, on_watermark
from penstock.windows import fixed

app = App("windows")

@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    level: int

readings = app.stream("readings", Reading, event_time=EventTime(disorder="1h"))
trigger = on_watermark(early=every_record(2), late=every_record())
declared = readings.window(fixed("1m"), by="device", lateness="1h").trigger(trigger)
results = declared.aggregate(n=count(), levels=total("level"))
app.table("by_spark", results)
app.table("by_services", results, on="services")
"""


class Run(DevRun):
    """The application, readings that come all the time, and what they add up to."""

    def __init__(self, home: Path) -> None:
        (home / "app.py").write_text(APP, encoding="utf-8")
        (home / "penstock.toml").write_text('[services]\nstate = "disk"\n', encoding="utf-8")
        super().__init__(home, home / "app.py")
        self.chance = random.Random(11)

    def send(self, count: int, at: datetime | None = None) -> None:
        with Producer(self.connection()) as producer:
            for _ in range(count):
                key = f"d{self.chance.randrange(20)}"
                happened = at or START_AT + timedelta(seconds=self.chance.uniform(0, 1200))
                row = {"device": key, "at": happened, "level": self.chance.randrange(100)}
                producer.send("readings", key=key.encode(), value=msgspec.json.encode(row))

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send some readings ten times a second; those that a dead broker refuses do not count."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.1):
                try:
                    self.send(30)
                except (PenstockError, OSError):
                    continue

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def table(self, topic: str) -> dict[tuple[object, object], tuple[object, object]]:
        latest = {found.key: found.value for found in self.raw(topic)}
        rows = [msgspec.json.decode(value) for value in latest.values() if value is not None]
        return {(row["device"], row["window_start"]): (row["n"], row["levels"]) for row in rows}

    def recount(self) -> dict[tuple[object, object], tuple[object, object]]:
        counts: Counter[tuple[object, object]] = Counter()
        levels: Counter[tuple[object, object]] = Counter()
        for row in self.records("readings"):
            minute = str(row["at"])[:16] + ":00Z"
            counts[row["device"], minute] += 1
            levels[row["device"], minute] += int(str(row["level"]))
        return {key: (counts[key], levels[key]) for key in counts}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.traces.kill()


def grown(run: Run, after: str) -> None:
    """Wait until both tables have grown after something was killed."""
    before = [len(run.raw(topic)) for topic in ("by_spark", "by_services")]
    wait_for(
        f"panes of both engines after {after}\n{run.said()}",
        LIMIT_SECONDS,
        lambda: all(
            len(run.raw(topic)) > count
            for topic, count in zip(("by_spark", "by_services"), before, strict=True)
        ),
    )


def test_windows_are_right_on_both_engines_whatever_is_killed(run):
    with run.running() as dev:
        wait_for(f"the topics\n{run.said()}", LIMIT_SECONDS, lambda: "running" in run.said())
        with run.sending():
            grown(run, "the start")
            assert run.traces.kill("run", "--part by_services.windows ", program="python") == 1
            assert run.traces.kill("org.apache.spark", program="java")
            grown(run, "the death of a service and of Spark")
            os.killpg(dev.pid, signal.SIGKILL)
    run.traces.kill()
    run.assert_gone()
    with run.running():
        with run.sending():
            grown(run, "the death of everything")
        # What no early pane has shown comes when the watermark passes it.
        far = START_AT + timedelta(days=1)
        for device in range(40):
            with Producer(run.connection()) as producer:
                row = {"device": f"x{device}", "at": far, "level": 0}
                producer.send("readings", key=f"x{device}".encode(), value=msgspec.json.encode(row))

        def settled(topic: str) -> bool:
            expected = {key: each for key, each in run.recount().items() if key[0][0] == "d"}
            return {key: each for key, each in run.table(topic).items() if key[0][0] == "d"} == (
                expected
            )

        for topic in ("by_services", "by_spark"):
            wait_for(
                f"{topic} to be right\n{run.said()}", LIMIT_SECONDS, lambda t=topic: settled(t)
            )
    run.traces.kill()
    run.assert_gone()
