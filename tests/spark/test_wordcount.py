"""The tutorial's word count as it runs: real processes on a real broker and a real Spark.

Every part, and the broker, is killed while lines flow. In the end both tables must equal a recount of the lines,
and the lines must be those of the book, each once.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

import msgspec
import pytest

from penstock.backbone.broker.broker import EmbeddedBroker
from penstock.backbone.declare import declare_application
from penstock.backbone.log.reader import LogReader
from penstock.cli.load import load_application
from penstock.machine.places import Places

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

DIRECTORY = Path(__file__).parents[2] / "apps" / "wordcount"
BOOK = (DIRECTORY / "mariner.txt").read_text().splitlines()
START_SECONDS = 90
CATCH_UP_SECONDS = 120
STOP_SECONDS = 60
SERVICES = ("split", "count")
PIPELINES = ("keep_long", "count_in_spark")


class WordCount:
    """The application in processes of its own, one for each group of parts."""

    def __init__(self, home: Path, broker: EmbeddedBroker) -> None:
        self._home = home
        self._broker = broker
        self._reader = LogReader(broker.connection)
        self._processes: dict[tuple[str, ...], subprocess.Popen[bytes]] = {}

    def start(self, *parts: str) -> None:
        words = [word for part in parts for word in ("--part", part)]
        command = [sys.executable, "-m", "penstock.cli", "--set", f"home={self._home}"]
        with (self._home / f"{parts[0]}.out").open("ab") as log:
            self._processes[parts] = subprocess.Popen(
                [*command, "run", str(DIRECTORY), *words],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def kill(self, *parts: str) -> None:
        process = self._processes.pop(parts)
        assert process.poll() is None, self.said(*parts)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)

    def kill_broker(self) -> None:
        self._broker.kill()
        self._broker.ensure()

    def stop(self, *parts: str) -> int:
        process = self._processes.pop(parts)
        process.terminate()
        try:
            return process.wait(STOP_SECONDS)
        finally:
            process.kill()

    def stop_all(self) -> None:
        for parts in list(self._processes):
            self.stop(*parts)

    def said(self, *parts: str) -> str:
        return (self._home / f"{parts[0]}.out").read_text(errors="replace")

    def eventually(
        self, condition: Callable[[], bool], *, within: float, otherwise: Callable[[], str]
    ):
        deadline = time.monotonic() + within
        pause = threading.Event()
        while not condition():
            for parts, process in self._processes.items():
                assert process.poll() is None, self.said(*parts)
            assert time.monotonic() < deadline, otherwise()
            pause.wait(0.3)

    def lines(self) -> list[str]:
        return [msgspec.json.decode(found.value)["text"] for found in self._reader.read("lines")]

    def table(self, name: str) -> dict[str, int]:
        latest = {found.key: found.value for found in self._reader.read(name)}
        records = [msgspec.json.decode(value) for value in latest.values()]
        return {found["word"]: found["count"] for found in records}

    def words(self, name: str) -> list[str]:
        return [msgspec.json.decode(found.value)["word"] for found in self._reader.read(name)]


def recount(lines: list[str]) -> Counter[str]:
    """Count without the application's own regular expression."""
    cleaned = ("".join(c if c.isalnum() or c == "'" else " " for c in line) for line in lines)
    words = (word.strip("'").lower() for line in cleaned for word in line.split())
    return Counter(word for word in words if word)


@pytest.fixture
def wordcount(tmp_path) -> Iterator[WordCount]:
    with EmbeddedBroker(Places(tmp_path).broker) as broker:
        declare_application(load_application(str(DIRECTORY)).graph, broker.connection)
        running = WordCount(tmp_path, broker)
        try:
            yield running
        finally:
            running.stop_all()


def test_both_engines_agree_with_a_recount_after_every_part_and_the_broker_were_killed(wordcount):
    wordcount.start(*PIPELINES)
    wordcount.start(*SERVICES)
    wordcount.start("book")
    wordcount.eventually(
        lambda: bool(wordcount.table("spark_counts")) and bool(wordcount.table("counts")),
        within=START_SECONDS,
        otherwise=lambda: wordcount.said(*PIPELINES) + wordcount.said(*SERVICES),
    )

    for parts in (("book",), SERVICES, PIPELINES):
        wordcount.kill(*parts)
        wordcount.start(*parts)
    wordcount.kill_broker()
    before = len(wordcount.lines())
    wordcount.eventually(
        lambda: len(wordcount.lines()) > before + 100,
        within=START_SECONDS,
        otherwise=lambda: wordcount.said("book"),
    )
    wordcount.stop("book")

    lines = wordcount.lines()
    assert Counter(lines) == Counter(islice(cycle(BOOK), len(lines)))
    expected = recount(lines)
    for table in ("counts", "spark_counts"):
        wordcount.eventually(
            lambda table=table: wordcount.table(table) == expected,
            within=CATCH_UP_SECONDS,
            otherwise=lambda table=table: f"{table}: {expected - Counter(wordcount.table(table))}",
        )
    long = {word for word in expected if len(word) >= 10}
    wordcount.eventually(
        lambda: set(wordcount.words("long_words")) == long,
        within=CATCH_UP_SECONDS,
        otherwise=lambda: str(long ^ set(wordcount.words("long_words"))),
    )
    assert wordcount.words("words") != []
    assert Counter(wordcount.words("words")) == expected
