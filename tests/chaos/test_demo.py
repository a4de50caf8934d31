"""The demo as a user runs it, while everything in it is killed; then an independent recount."""

import os
import re
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from penstock.backbone.brokerplan import ClusterPlan
from penstock.backbone.connection import Connection
from penstock.backbone.logreader import LogReader
from penstock.core.settings import KafkaSettings
from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent))
from processes import Traces, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

APP = Path(__file__).parents[2] / "apps" / "wordcount"
WORD = re.compile("[A-Za-z0-9]+(?:'[A-Za-z]+)*")
UP_SECONDS = 120
CATCH_UP_SECONDS = 120
GONE_SECONDS = 45


class Demo:
    """One home directory; `penstock dev` is started in it again and again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mark = f"mark-{uuid.uuid4()}"
        self.traces = Traces(mark=self.mark, directory=home)
        self.output = home / "dev.out"

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "penstock.cli", "--set", f"home={self.home}"]
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [*command, "dev", str(APP), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {"PENSTOCK_TEST_MARK": self.mark},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(GONE_SECONDS)

    def records(self, topic: str) -> list[dict[str, object]]:
        """Return what a reader of committed records sees now; nothing while the broker is away."""
        try:
            plan = ClusterPlan.from_json((self.home / "broker" / "broker.json").read_text("utf-8"))
            reader = LogReader(Connection(plan.bootstrap, KafkaSettings()))
            return [msgspec.json.decode(found.value) for found in reader.read(topic) if found.value]
        except (PenstockError, OSError):
            return []

    def table(self, topic: str) -> dict[str, int]:
        return {str(row["word"]): int(str(row["count"])) for row in self.records(topic)}

    def recount(self) -> dict[str, int]:
        words = (WORD.findall(str(row["text"])) for row in self.records("lines"))
        return dict(Counter(word.lower() for line in words for word in line))

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-8000:]

    def assert_gone(self) -> None:
        wait_for(f"the end of {self.traces.find()}", GONE_SECONDS, lambda: not self.traces.find())


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    demo.traces.kill()


def counting(demo: Demo) -> bool:
    return bool(demo.table("counts")) and bool(demo.table("spark_counts"))


def progress(demo: Demo) -> tuple[int, int]:
    return sum(demo.table("counts").values()), sum(demo.table("spark_counts").values())


def wait_for_progress(demo: Demo, after: str) -> None:
    services, pipelines = progress(demo)
    wait_for(
        f"both counts to go on after {after}\n{demo.said()}",
        CATCH_UP_SECONDS,
        lambda: progress(demo)[0] > services and progress(demo)[1] > pipelines,
    )


def test_counts_are_right_whatever_is_killed_and_nothing_is_left(demo):
    with demo.running() as dev:
        wait_for(f"counts\n{demo.said()}", UP_SECONDS, lambda: counting(demo))
        assert demo.traces.kill("run", "--part count ", program="python") == 1
        wait_for_progress(demo, "the death of a service")
        assert demo.traces.kill("org.apache.spark", program="java") == 1
        wait_for_progress(demo, "the death of Spark")
        assert demo.traces.kill("kafka.Kafka", program="java") == 1
        wait_for_progress(demo, "the death of the broker")
        assert dev.poll() is None, demo.said()
        os.killpg(dev.pid, signal.SIGKILL)
        dev.wait(GONE_SECONDS)
        demo.assert_gone()

    parts = ("split", "count", "keep_long", "count_in_spark")
    with demo.running(*(word for part in parts for word in ("--only", part))) as dev:
        wait_for(f"lines\n{demo.said()}", UP_SECONDS, lambda: bool(demo.records("lines")))
        expected = demo.recount()
        assert sum(expected.values()) > 0
        wait_for(
            "both tables to be the recount of the lines",
            CATCH_UP_SECONDS,
            lambda: demo.table("counts") == expected and demo.table("spark_counts") == expected,
        )
        dev.send_signal(signal.SIGINT)
        assert dev.wait(60) in {0, 130}, demo.said()
        demo.assert_gone()
    assert "Traceback" not in demo.said()
