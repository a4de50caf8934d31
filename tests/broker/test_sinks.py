"""Sinks from a real broker: exactly once into files, whenever they are killed."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.connectors import json_files, run_sink
from penstock.core.graph.graph import Graph
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.core.status.report import PartReport
from penstock.errors import ConfigurationError
from penstock.machine.places import Places

LIMIT_SECONDS = 60


@record()
class Number:
    value: int


def declared(kafka: Connection, name: str, out: Path) -> Graph:
    app = App(name)
    numbers = app.stream(f"{name}.numbers", Number, partitions=2)
    app.sink("out", json_files(out, every="300ms", size="2KiB"), reads=numbers)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


def send(kafka: Connection, graph: Graph, values: range, *, wrong: int = 0) -> None:
    topic = f"{graph.app}.numbers"
    with Producer(kafka) as producer:
        for value in values:
            producer.send(topic, key=None, value=b'{"value":%d}' % value, partition=value % 2)
        for _ in range(wrong):
            producer.send(topic, key=None, value=b"wrong", partition=0)


def numbers_in(out: Path) -> list[int]:
    files = sorted(out.glob("[!.]*"))
    return [json.loads(line)["value"] for file in files for line in file.read_text().splitlines()]


@contextmanager
def running(kafka: Connection, graph: Graph, places: Path) -> Iterator[list[PartReport]]:
    reports: list[PartReport] = []
    site = Site(
        settings=Settings(),
        places=Places(places),
        connection=kafka,
        stop=threading.Event(),
        report=reports.append,
    )
    thread = threading.Thread(target=run_sink, args=(graph, "out", site))
    thread.start()
    try:
        yield reports
    finally:
        site.stop.set()
        thread.join(LIMIT_SECONDS)
    assert not thread.is_alive()


def eventually(condition, seconds: float = LIMIT_SECONDS) -> None:
    pause = threading.Event()
    for _ in range(round(seconds / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it did not come about in time")


def test_records_become_lines_of_files_once_and_the_group_follows(kafka, topic, tmp_path):
    out = tmp_path / "out"
    graph = declared(kafka, topic.name("app"), out)
    send(kafka, graph, range(500), wrong=2)
    with running(kafka, graph, tmp_path) as reports:
        eventually(lambda: len(numbers_in(out)) == 500)
        eventually(lambda: reports[-1].counts.dead_lettered == 2)
    with running(kafka, graph, tmp_path) as again:
        send(kafka, graph, range(500, 600))
        eventually(lambda: len(numbers_in(out)) == 600)
    assert sorted(numbers_in(out)) == list(range(600))
    assert (reports[-1].kind, reports[-1].state) == ("sink", "stopped")
    assert (again[-1].counts.passed, again[-1].counts.dead_lettered) == (100, 0)
    letters = list(LogReader(kafka).read(graph.dead_letters.name))
    assert [letter.value for letter in letters] == [b"wrong", b"wrong"]
    assert dict(letters[0].headers)["penstock.part"] == b"out"
    lags = Groups(kafka).lag(f"{graph.app}.out")
    assert [lag.lag for lag in lags.values()] == [0, 0]


def test_files_that_were_moved_away_are_not_written_again(kafka, topic, tmp_path):
    out = tmp_path / "out"
    graph = declared(kafka, topic.name("app"), out)
    send(kafka, graph, range(10))
    with running(kafka, graph, tmp_path):
        eventually(lambda: len(numbers_in(out)) == 10)
    for file in out.glob("[!.]*"):
        file.unlink()
    send(kafka, graph, range(10, 14))
    with running(kafka, graph, tmp_path):
        eventually(lambda: len(numbers_in(out)) == 4)
    assert sorted(numbers_in(out)) == [10, 11, 12, 13]


CHILD = """
import os, signal, sys, threading
from pathlib import Path
from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.site import Site
from penstock.connectors import json_files, run_sink
from penstock.connectors.sink import run
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.machine.places import Places

bootstrap, name, out, step, hits = sys.argv[1:]

def dying(at, call):
    def die(*given, **named):
        global hits
        if at == step:
            hits = int(hits) - 1
            if not hits:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return die

os.fsync = dying("half a file", os.fsync)
Path.rename = dying("before the name", Path.rename)

class DyingConsumer(Consumer):
    commit = dying("before the offsets", Consumer.commit)
    consume = dying("before the records", Consumer.consume)

run.Consumer = DyingConsumer

@record()
class Number:
    value: int

app = App(name)
numbers = app.stream(f"{name}.numbers", Number, partitions=2)
app.sink("out", json_files(out, every="300ms", size="2KiB"), reads=numbers)
connection = Connection(bootstrap=bootstrap, settings=KafkaSettings(bootstrap=bootstrap))
run_sink(app.graph, "out", Site(settings=Settings(), places=Places("."), connection=connection,
                                stop=threading.Event(), report=lambda report: None))
"""


def test_killing_the_sink_at_any_step_loses_and_doubles_nothing(kafka, topic, tmp_path):
    out = tmp_path / "out"
    graph = declared(kafka, topic.name("app"), out)
    send(kafka, graph, range(2_000))
    for step, hits in [
        ("half a file", 3),
        ("before the name", 2),
        ("before the offsets", 2),
        ("before the records", 3),
        ("before the offsets", 5),
    ]:
        arguments = [kafka.bootstrap, graph.app, str(out), step, str(hits)]
        program = [sys.executable, "-c", CHILD, *arguments]
        died = subprocess.run(program, check=False, timeout=LIMIT_SECONDS)
        assert died.returncode == -signal.SIGKILL
    assert 0 < len(numbers_in(out)) < 2_000
    with running(kafka, graph, tmp_path):
        eventually(lambda: len(numbers_in(out)) >= 2_000)
    assert sorted(numbers_in(out)) == list(range(2_000))
    for number in (0, 1):
        own = [value for value in numbers_in(out) if value % 2 == number]
        assert own == sorted(own)


def test_files_of_a_topic_that_was_made_again_are_refused(kafka, topic, tmp_path):
    out = tmp_path / "out"
    graph = declared(kafka, topic.name("app"), out)
    send(kafka, graph, range(20))
    with running(kafka, graph, tmp_path) as reports:
        eventually(lambda: len(numbers_in(out)) == 20)
    Topics(kafka).delete([f"{graph.app}.numbers"])
    Topics(kafka).declare(graph.topics())
    send(kafka, graph, range(6))
    site = Site(
        settings=Settings(),
        places=Places(tmp_path),
        connection=kafka,
        stop=threading.Event(),
        report=reports.append,
    )
    with pytest.raises(ConfigurationError, match="it was created again") as raised:
        run_sink(graph, "out", site)
    assert raised.value.code == "sink.beyond-end"
    assert reports[-1].state == "failed"
    for file in out.glob("*.jsonl"):
        file.unlink()
    with running(kafka, graph, tmp_path):
        eventually(lambda: sorted(numbers_in(out)) == list(range(6)))
