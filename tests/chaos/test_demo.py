"""The demo as a user runs it, while everything in it is killed; then an independent recount.

In the end both tables must equal a recount of the lines, and the lines must be those of the book,
each once.
"""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from devrun import DevRun
from processes import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

APP = Path(__file__).parents[2] / "apps" / "wordcount"
BOOK = (APP / "mariner.txt").read_text().splitlines()
LONG = 10
"""So many letters has a word that the application keeps as a long one."""
UP_SECONDS = 120
CATCH_UP_SECONDS = 120
GONE_SECONDS = 45


class Demo(DevRun):
    """The word count, and what it should have counted."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, APP)

    def table(self, topic: str) -> dict[str, int]:
        return {str(row["word"]): int(str(row["count"])) for row in self.records(topic)}

    def texts(self, topic: str, field: str) -> list[str]:
        return [str(row[field]) for row in self.records(topic)]


def recount(lines: list[str]) -> dict[str, int]:
    """Count without the application's own regular expression."""
    cleaned = ("".join(c if c.isalnum() or c == "'" else " " for c in line) for line in lines)
    words = (word.strip("'").lower() for line in cleaned for word in line.split())
    return dict(Counter(word for word in words if word))


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
        for part in ("count", "book"):
            assert demo.traces.kill("run", f"--part {part} ", program="python") == 1
        wait_for_progress(demo, "the death of a service and of a source")
        # A JVM that is about to start another program is two for a moment.
        assert demo.traces.kill("org.apache.spark", program="java") >= 1
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
        lines = demo.texts("lines", "text")
        assert Counter(lines) == Counter(islice(cycle(BOOK), len(lines)))
        expected = recount(lines)
        wait_for(
            "both tables to be the recount of the lines",
            CATCH_UP_SECONDS,
            lambda: demo.table("counts") == expected and demo.table("spark_counts") == expected,
        )
        long = {word for word in expected if len(word) >= LONG}
        wait_for(
            "the long words to be those of the lines",
            CATCH_UP_SECONDS,
            lambda: set(demo.texts("long_words", "word")) == long,
        )
        assert Counter(demo.texts("words", "word")) == expected
        dev.send_signal(signal.SIGINT)
        assert dev.wait(60) in {0, 130}, demo.said()
        demo.assert_gone()
    assert "Traceback" not in demo.said()
