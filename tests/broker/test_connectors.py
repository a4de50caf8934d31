"""Sources onto a real broker: exactly once from files, back pressure to sockets.

Long because every kind of source meets its own faults here.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.connectors import run_source, tcp_lines, text_file
from penstock.connectors.connector import Item
from penstock.connectors.source import pacing
from penstock.connectors.source.positions import read_positions
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Connector
from penstock.core.rules.check import verified
from penstock.core.settings.settings import KafkaSettings, ServiceSettings, Settings
from penstock.core.status.report import PartReport
from penstock.errors import ConfigurationError, FencedError
from penstock.machine.places import Places
from penstock.machine.ports import free_ports

LIMIT_SECONDS = 60


@record()
class Number:
    value: int


def number(text: str) -> Number | None:
    return None if text.startswith("#") else Number(int(text))


def declared(kafka: Connection, name: str, connector: Connector, *, parse: Any = number) -> Graph:
    app = App(name)
    numbers = app.stream(f"{name}.numbers", Number, partitions=1)
    app.source("in", connector, into=numbers, parse=parse)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


def numbers_on(kafka: Connection, graph: Graph) -> list[int]:
    log = LogReader(kafka).read(f"{graph.app}.numbers")
    return [int(found.value.removeprefix(b'{"value":').removesuffix(b"}")) for found in log]


def dead_letters_on(kafka: Connection, graph: Graph) -> list[tuple[bytes, dict[str, str]]]:
    log = LogReader(kafka).read(graph.dead_letters.name)
    return [
        (found.value, {name: (value or b"").decode() for name, value in found.headers})
        for found in log
    ]


@dataclass
class Running:
    """A source that runs in a thread, its reports and how it ended."""

    site: Site
    reports: list[PartReport]
    thread: threading.Thread
    ended: list[Any]

    def detail(self, fact: str) -> str:
        return eventually(lambda: self.reports and self.reports[-1].detail.get(fact))


@contextmanager
def running(
    kafka: Connection, graph: Graph, places: Path, settings: Settings | None = None
) -> Iterator[Running]:
    reports: list[PartReport] = []
    ended: list[Any] = []
    site = Site(
        settings=settings or Settings(),
        places=Places(places),
        connection=kafka,
        stop=threading.Event(),
        report=reports.append,
    )

    def run() -> None:
        try:
            run_source(graph, "in", site)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Running(site, reports, thread, ended)
    finally:
        site.stop.set()
        thread.join(LIMIT_SECONDS)
    assert not thread.is_alive()


def eventually(condition: Callable[[], object]):
    deadline = time.monotonic() + LIMIT_SECONDS
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        pause.wait(0.05)
    return found


def run_to_end(kafka: Connection, graph: Graph, places: Path) -> PartReport:
    with running(kafka, graph, places) as source:
        source.thread.join(LIMIT_SECONDS)
    if source.ended:
        raise source.ended[0]
    return source.reports[-1]


def test_every_line_of_a_file_becomes_a_record_a_dead_letter_or_nothing(kafka, topic, tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_bytes(b"1\n# skipped\nmany\n2\r\n\xff\n3")
    graph = declared(kafka, topic.name("app"), text_file(path))
    last = run_to_end(kafka, graph, tmp_path)
    assert numbers_on(kafka, graph) == [1, 2, 3]
    dead = dead_letters_on(kafka, graph)
    assert [value for value, _ in dead] == [b"many", b"\xff"]
    headers = dead[0][1]
    assert "ValueError" in headers["penstock.reason"]
    assert headers["penstock.code"] == "user.raised"
    assert headers["penstock.topic"] == "source:in"
    assert (headers["penstock.partition"], headers["penstock.offset"]) == ("0", "12")
    assert headers["penstock.part"] == "in"
    assert (last.state, last.reason) == ("stopped", "read to its end")
    counts = last.counts
    assert (counts.received, counts.passed, counts.filtered, counts.dead_lettered) == (6, 3, 1, 2)
    assert counts.balanced


def test_a_file_that_was_read_gives_only_what_was_appended(kafka, topic, tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_bytes(b"1\n2\n")
    graph = declared(kafka, topic.name("app"), text_file(path))
    run_to_end(kafka, graph, tmp_path)
    with path.open("ab") as file:
        file.write(b"3\n")
    assert run_to_end(kafka, graph, tmp_path).counts.received == 1
    assert run_to_end(kafka, graph, tmp_path).counts.received == 0
    assert numbers_on(kafka, graph) == [1, 2, 3]


def test_a_file_that_was_replaced_is_refused_and_nothing_is_written(kafka, topic, tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_bytes(b"1\n2\n")
    graph = declared(kafka, topic.name("app"), text_file(path))
    run_to_end(kafka, graph, tmp_path)
    path.write_bytes(b"7\n8\n9\n")
    with pytest.raises(ConfigurationError, match="is not the file that was read so far"):
        run_to_end(kafka, graph, tmp_path)
    assert numbers_on(kafka, graph) == [1, 2]


CHILD = """
import os, signal, sys, threading
from dataclasses import replace
from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.connectors import run_source, text_file
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.machine.places import Places
from penstock.machine.ports import free_ports

bootstrap, name, path, step, hits = sys.argv[1:]

def die(at):
    global hits
    if at == step:
        hits = int(hits) - 1
        if not hits:
            os.kill(os.getpid(), signal.SIGKILL)

class Dying:
    def __init__(self, reading):
        self.reading = reading
    def read(self):
        die("after commit")
        lines = self.reading.read()
        die("after read")
        return lines
    def position_after(self, item):
        die("before commit")
        return self.reading.position_after(item)
    @property
    def ended(self):
        return self.reading.ended
    def close(self):
        self.reading.close()

class DyingFile:
    interactive = grows = False
    def describe(self):
        return "a file read by somebody who dies"
    def splits(self):
        return text_file(path).splits()
    def open(self, split, position):
        return Dying(text_file(path).open(split, position))

@record()
class Number:
    value: int

app = App(name)
numbers = app.stream(f"{name}.numbers", Number, partitions=1)
app.source("in", DyingFile(), into=numbers, parse=lambda text: Number(int(text)))
connection = Connection(bootstrap=bootstrap, settings=KafkaSettings(bootstrap=bootstrap))
run_source(app.graph, "in", Site(settings=Settings(), places=Places("."), connection=connection,
                                 stop=threading.Event(), report=lambda report: None))
"""


def test_killing_the_source_at_any_step_loses_and_doubles_nothing(kafka, topic, tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("".join("bad\n" if n % 1000 == 0 else f"{n}\n" for n in range(42_000)))
    graph = declared(kafka, topic.name("app"), text_file(path))

    def run(step: str, hits: int) -> int:
        arguments = [kafka.bootstrap, graph.app, str(path), step, str(hits)]
        program = [sys.executable, "-c", CHILD, *arguments]
        return subprocess.run(program, check=False, timeout=LIMIT_SECONDS).returncode

    for step, hits in [
        ("after read", 1),
        ("before commit", 1),
        ("after commit", 2),
        ("before commit", 2),
        ("after read", 3),
    ]:
        assert run(step, hits) == -signal.SIGKILL
    assert 0 < len(numbers_on(kafka, graph)) < 41_958
    assert run("never", 1) == 0
    assert numbers_on(kafka, graph) == [n for n in range(42_000) if n % 1000]
    assert len(dead_letters_on(kafka, graph)) == 42


def test_lines_of_a_slow_parse_are_written_while_it_goes_on(kafka, topic, tmp_path):
    file, seen = tmp_path / "lines.txt", threading.Event()
    file.write_text("".join(f"{number}\n" for number in range(300)))

    def parse(text: str) -> Number:
        if text == "299":
            assert seen.wait(LIMIT_SECONDS)  # comes with what was written before this line
        threading.Event().wait(0.01)
        return Number(int(text))

    graph = declared(kafka, topic.name("app"), text_file(file), parse=parse)
    with running(kafka, graph, tmp_path) as source:
        eventually(lambda: numbers_on(kafka, graph))
        seen.set()
        source.thread.join(LIMIT_SECONDS)
    assert numbers_on(kafka, graph) == list(range(300))
    assert source.reports[-1].counts.passed == 300


def test_a_second_run_of_the_same_source_takes_over_and_the_first_stops(kafka, topic, tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n")
    graph = declared(kafka, topic.name("app"), text_file(path, follow=True))
    with running(kafka, graph, tmp_path) as first:
        eventually(lambda: numbers_on(kafka, graph) == [1])
        with running(kafka, graph, tmp_path) as second:
            eventually(lambda: second.reports and second.reports[-1].state == "running")
            with path.open("a") as file:
                file.write("2\n")
            first.thread.join(LIMIT_SECONDS)
            eventually(lambda: len(numbers_on(kafka, graph)) == 2)
        assert second.ended == []
    assert [type(error) for error in first.ended] == [FencedError]
    assert first.reports[-1].state == "failed"
    assert numbers_on(kafka, graph) == [1, 2]


def test_a_source_that_reads_nothing_keeps_its_producer_from_being_forgotten(
    kafka, topic, tmp_path, monkeypatch
):
    monkeypatch.setattr(pacing, "KEEP_SECONDS", 0.1)
    path = tmp_path / "numbers.txt"
    path.write_text("1\n2\n")
    graph = declared(kafka, topic.name("app"), text_file(path, follow=True))
    positions = f"{graph.app}.in.positions"
    with running(kafka, graph, tmp_path):
        eventually(lambda: numbers_on(kafka, graph) == [1, 2])
        eventually(lambda: len(list(LogReader(kafka).read(positions))) > 2)
        with path.open("a") as file:
            file.write("3\n")
        eventually(lambda: numbers_on(kafka, graph)[2:])
    assert numbers_on(kafka, graph) == [1, 2, 3]


def test_the_position_of_a_file_is_the_number_of_bytes_read_and_a_fingerprint(
    kafka, topic, tmp_path
):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n22\n333\n")
    graph = declared(kafka, topic.name("app"), text_file(path))
    run_to_end(kafka, graph, tmp_path)
    (position,) = read_positions(kafka, f"{graph.app}.in.positions").values()
    assert (position["at"], len(position["fingerprint"])) == (9, 16)


class Days:
    """A connector whose splits are days of numbers."""

    interactive = grows = False

    def __init__(self, days: dict[str, list[int]]) -> None:
        self.days = days

    def describe(self) -> str:
        return "days of numbers"

    def splits(self) -> list[str]:
        return list(self.days)

    def open(self, split: str, position: list[int] | None) -> "Day":
        return Day(self.days[split], position[0] if position else 0)


class Day:
    def __init__(self, numbers: list[int], at: int) -> None:
        self.left = [Item(Number(value), at + n) for n, value in enumerate(numbers[at:])]

    @property
    def ended(self) -> bool:
        return not self.left

    def read(self) -> list[Item]:
        items, self.left = self.left[:2], self.left[2:]
        return items

    def position_after(self, item: Item) -> list[int]:
        return [item.at + 1]

    def close(self) -> None:
        pass


def test_records_in_several_splits_are_on_the_log_once_over_restarts(kafka, topic, tmp_path):
    days = {"monday": [1, 2, 3], "tuesday": []}
    graph = declared(kafka, topic.name("app"), Days(days), parse=None)
    run_to_end(kafka, graph, tmp_path)
    days["monday"].append(4)
    days["tuesday"] += [5, "six"]
    days["wednesday"] = [7]
    last = run_to_end(kafka, graph, tmp_path)
    assert sorted(numbers_on(kafka, graph)) == [1, 2, 3, 4, 5, 7]
    assert last.counts.received == 4
    ((value, headers),) = dead_letters_on(kafka, graph)
    assert (value, headers["penstock.topic"]) == (b'{"value":"six"}', "source:in/tuesday")
    positions = read_positions(kafka, f"{graph.app}.in.positions")
    assert positions == {"monday": [4], "tuesday": [2], "wednesday": [1]}


def address(source: Running) -> tuple[str, int]:
    host, port = source.detail("listening on").rsplit(":", 1)
    return host, int(port)


def test_many_senders_write_over_tcp_and_garbage_is_dead_lettered(kafka, topic, tmp_path):
    graph = declared(kafka, topic.name("app"), tcp_lines(max_line="100B"))

    def send(first: int) -> None:
        with socket.create_connection(address(source), timeout=LIMIT_SECONDS) as sender:
            sender.sendall(b"".join(b"%d\n" % n for n in range(first, first + 1000)))

    with running(kafka, graph, tmp_path) as source:
        senders = [threading.Thread(target=send, args=(n * 1000,)) for n in range(10)]
        for each in senders:
            each.start()
        for each in senders:
            each.join(LIMIT_SECONDS)
        with socket.create_connection(address(source), timeout=LIMIT_SECONDS) as sender:
            sender.sendall(b"\x00\xff garbage\n" + b"9" * 1000 + b"\n12")
        eventually(lambda: source.reports[-1].counts.dead_lettered == 3)
        eventually(lambda: source.reports[-1].counts.passed == 10_000)
    assert source.ended == []
    found = numbers_on(kafka, graph)
    assert sorted(found) == list(range(10_000))
    for n in range(10):
        own = [value for value in found if value // 1000 == n]
        assert own == sorted(own)
    dead = dead_letters_on(kafka, graph)
    assert Counter(headers["penstock.code"] for _, headers in dead) == {
        "data.not-utf8": 1,
        "data.line-too-long": 1,
        "data.half-line": 1,
    }
    assert {headers["penstock.topic"] for _, headers in dead} == {"source:in"}
    assert source.reports[-1].counts.balanced


LONG_LINE = b"7".rjust(1000, b"0") + b"\n"


def test_senders_wait_while_kafka_is_away_and_lose_nothing(mortal_broker, tmp_path):
    kafka = mortal_broker.connection
    graph = declared(kafka, "waiting", tcp_lines())
    with (
        running(kafka, graph, tmp_path) as source,
        socket.create_connection(address(source), timeout=2) as sender,
    ):
        for pid in mortal_broker.pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            sent = _send_until_held_back(sender, limit=256 << 20)
            assert sent < 256 << 20
            report = eventually(lambda: _last_degraded(source))
            assert "waiting for Kafka" in report.reason
            assert report.counts.in_flight <= 2_000
        finally:
            for pid in mortal_broker.pids:
                os.kill(pid, signal.SIGCONT)
        sender.settimeout(LIMIT_SECONDS)
        sender.sendall(LONG_LINE[sent % len(LONG_LINE) :])
        expected = sent // len(LONG_LINE) + 1
        eventually(lambda: source.reports[-1].counts.passed == expected)
    assert source.ended == []
    assert numbers_on(kafka, graph) == [7] * expected


def test_a_stop_while_kafka_is_away_takes_no_longer_than_it_may(tmp_path):
    nowhere = Connection(f"127.0.0.1:{free_ports(1)[0]}", KafkaSettings())
    app = App("stopping")
    app.source("in", tcp_lines(), into=app.stream("stopping.numbers", Number), parse=number)
    settings = Settings(services=ServiceSettings(stop_timeout=timedelta(seconds=1)))
    with (
        running(nowhere, verified(app.graph), tmp_path, settings) as source,
        socket.create_connection(address(source), timeout=2) as sender,
    ):
        sender.sendall(b"1\n2")
        eventually(lambda: source.reports[-1].counts.in_flight == 1)
        stopped_at = time.monotonic()
        source.site.stop.set()
        source.thread.join(LIMIT_SECONDS)
        assert time.monotonic() - stopped_at < 10
    (error,) = source.ended
    assert error.code == "source.items-lost"
    assert source.reports[-1].state == "failed"


def _send_until_held_back(sender: socket.socket, *, limit: int) -> int:
    sent = 0
    while sent < limit:
        try:
            # From where the last send stopped, so that the bytes stay whole lines.
            sent += sender.send((LONG_LINE * 1000)[sent % len(LONG_LINE) :])
        except TimeoutError:
            break
    return sent


def _last_degraded(source: Running) -> PartReport | None:
    report = source.reports[-1]
    return report if report.state == "degraded" else None


def test_a_file_goes_on_after_the_broker_was_killed(mortal_broker, tmp_path):
    kafka = mortal_broker.connection
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{n}\n" for n in range(20_000)))
    graph = declared(kafka, "surviving", text_file(path, rate=8_000))
    with running(kafka, graph, tmp_path) as source:
        eventually(lambda: source.reports and source.reports[-1].counts.passed > 0)
        mortal_broker.kill()
        mortal_broker.ensure()
        source.thread.join(LIMIT_SECONDS)
    assert source.ended == []
    assert numbers_on(kafka, graph) == list(range(20_000))
    assert source.reports[-1].counts.balanced
    assert source.reports[-1].counts.passed == 20_000


def test_what_a_person_types_is_written_until_the_input_ends(kafka, topic, tmp_path):
    graph = declared(kafka, topic.name("app"), text_file(tmp_path / "unused.txt"))
    program = CHILD.replace("DyingFile()", "keyboard()").replace(
        "import run_source,", "import keyboard, run_source,"
    )
    arguments = [kafka.bootstrap, graph.app, "", "never", "1"]
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=b"1\n2\nthree\n4",
        check=False,
        timeout=LIMIT_SECONDS,
    )
    assert finished.returncode == 0
    assert numbers_on(kafka, graph) == [1, 2, 4]
    assert [value for value, _ in dead_letters_on(kafka, graph)] == [b"three"]
