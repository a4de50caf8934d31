"""One application on the shared broker and the shared Spark, for the tests that run pipelines."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock import App
from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.cli.main import main
from penstock.core.graph.graph import Graph
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.core.status.exposition import nested
from penstock.core.status.report import PartReport
from penstock.machine.places import Places
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.spark.session import jvm_end

WAIT_SECONDS = 400
LOOKS = (0.05, 0.05, 0.1, 0.1, 0.2)
"""The pauses between looks, in seconds; the last one stays. A look often reads a whole topic."""


class Ground:
    """One application on the shared broker, under names of its own."""

    def __init__(self, kafka, spark, home: Path) -> None:
        self.kafka = kafka
        self.spark = spark
        self.home = home
        self.name = f"app{uuid4().hex[:8]}"
        self.app = App(self.name)
        self.settings = Settings()
        self.reports: list[PartReport] = []

    def topic(self, name: str) -> str:
        return f"{self.name}.{name}"

    @property
    def graph(self) -> Graph:
        return verified(self.app.graph)

    def site(self, stop: threading.Event) -> Site:
        return Site(
            settings=self.settings,
            places=Places(self.home),
            connection=self.kafka,
            stop=stop,
            report=self.reports.append,
        )

    def declare(self) -> None:
        declare_application(self.graph, self.kafka)

    def send(self, topic: str, *pairs: tuple[bytes | None, bytes | None]) -> None:
        with Producer(self.kafka) as producer:
            for key, value in pairs:
                producer.send(self.topic(topic), key=key, value=value, headers=[("from", b"test")])

    def words(self, *words: str) -> None:
        self.send("words", *((w.encode(), json.dumps({"word": w}).encode()) for w in words))

    def read(self, topic: str) -> list:
        return list(LogReader(self.kafka).read(self.topic(topic)))

    def table(self, topic: str) -> dict[str, int]:
        rows = [json.loads(found.value) for found in self.read(topic)]
        return {row["word"]: row["count"] for row in rows}

    def last(self, part: str) -> PartReport:
        """Return what a part said last."""
        found = [each for each in list(self.reports) if each.part == self.topic(part)]
        return found[-1]

    def metrics(self, part: str) -> dict[str, Any]:
        return nested(self.last(part).metrics)

    @contextmanager
    def running(self, *names: str) -> Iterator[None]:
        stop, errors = threading.Event(), []

        def work() -> None:
            try:
                run_pipelines(self.graph, names, self.site(stop))
            except Exception as error:  # noqa: BLE001 - shown by the test
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(WAIT_SECONDS)
        assert not errors, str(errors[0])[:3000]

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        pauses = chain(LOOKS, repeat(LOOKS[-1]))
        while not condition():
            assert time.monotonic() < deadline, f"{what}; {self.reports[-2:]}"
            assert (end := jvm_end(self.spark)) is None, end
            assert self.reports[-1:] == [] or self.reports[-1].state != "failed", self.reports[-1]
            time.sleep(next(pauses))


@pytest.fixture
def ground(kafka, spark, tmp_path) -> Ground:
    return Ground(kafka, spark, tmp_path)


@pytest.fixture(scope="module")
def lasting_ground(kafka, spark, tmp_path_factory) -> Ground:
    """Give one application for all tests of a module."""
    return Ground(kafka, spark, tmp_path_factory.mktemp("ground"))


@pytest.fixture
def penstock(kafka, tmp_path, monkeypatch, capsys):
    """Give the command, connected to the test's broker, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
