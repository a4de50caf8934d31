"""Where pipelines are hurt: a broker, ``penstock run`` as a child, a feed, and the history."""

import json
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.core.status.report import PartReport, decode_report
from penstock.errors import PenstockError
from penstock.testing.broker import temporary_broker

HERE = Path(__file__).parent
checker = SimpleNamespace(**runpy.run_path(str(HERE / "checker.py")))

PARTS = ("copied", "counted")
PATIENCE = 300.0
HEALED = 90.0
"""Seconds after the last fault within which all must be handled (I6)."""
FEED, FEED_SECONDS = 50, 0.25
BIG = 8 << 20
APP = """
from typing import Annotated

from penstock import App, limits, micro_batch, record

app = App("hurt")


@record(key="key")
class Event:
    key: str
    id: Annotated[int, limits(ge=0)]
    weight: float = 0.0


@record(key="key")
class Count:
    key: str
    count: int


events = app.stream("events", Event, partitions=2)
seen = app.stream("seen", Event, partitions=2)
counts = app.table("counts", Count)


@app.pipeline(reads=events, writes=seen, trigger=micro_batch(every="200ms"))
def copied(events):
    return events


@app.pipeline(reads=events, writes=counts, trigger=micro_batch(every="200ms"))
def counted(events):
    return events.groupBy("key").count()
"""


class Run:
    """One process of ``penstock run`` with both pipelines; its reports as they come."""

    def __init__(self, arena: "Arena", *settings: str) -> None:
        self.reports: dict[str, list[PartReport]] = {part: [] for part in PARTS}
        words = [f"home={arena.home}", f"kafka.bootstrap={arena.kafka.bootstrap}", *settings]
        options = [word for each in words for word in ("--set", each)]
        parts = [word for part in PARTS for word in ("--part", part)]
        command = [sys.executable, "-m", "penstock.cli", *options, "run", str(arena.app)]
        with arena.output.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, *parts, "--report-json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            report = decode_report(line)
            self.reports[report.part].append(report)

    @property
    def last(self) -> list[PartReport]:
        return [reports[-1] for reports in self.reports.values() if reports]

    def is_idle(self, since: float) -> bool:
        """Whether both have said since then that they have done everything there was."""
        return len(self.last) == len(PARTS) and all(
            report.at > since
            and report.state == "running"
            and (report.lag, report.counts.in_flight) == (0, 0)
            for report in self.last
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()


class Arena:
    """A broker with one application; every process that was started ends with the arena."""

    def __init__(self, broker: Any, home: Path, seed: int) -> None:
        self.broker = broker
        self.kafka = broker.connection
        self.home = home
        self.app = home / "app.py"
        self.app.write_text(APP, encoding="utf-8")
        self.output = home / "run.out"
        self.chance = random.Random(seed)
        self.sent = 0
        self.poison: set[int] = set()
        self.runs: list[Run] = []

    def start(self, *settings: str) -> Run:
        run = Run(self, *settings)
        self.runs.append(run)
        return run

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-4000:]

    def feed(self, count: int = FEED, *, poison: float = 0.0, big: bool = False) -> None:
        """Write events; what a broker that is away refuses may be on the log, or not."""
        try:
            with Producer(self.kafka) as producer:
                for _ in range(count):
                    self._write(producer, poison)
                if big:
                    self.sent += 1
                    self.poison.add(self.sent)
                    value = {"key": "big", "text": "x" * BIG, "id": self.sent}
                    producer.send("events", key=b"big", value=msgspec.json.encode(value))
        except PenstockError:
            return

    def _write(self, producer: Producer, poison: float) -> None:
        self.sent += 1
        key, id_ = f"k{self.chance.randrange(50)}", self.sent
        given: bytes | None = key.encode()
        value = msgspec.json.encode({"key": key, "weight": self.chance.random(), "id": id_})
        if self.chance.random() < poison:
            self.poison.add(id_)
            bad = [
                b"\xff%d" % id_,
                b'{"key":5,"id":%d}' % id_,
                b'{"key":"%s","id":-%d}' % (given, id_),
                b'{"key":"%s","weight":NaN,"id":%d}' % (given, id_),
                b"[" * 1000 + b"%d" % id_,
                b'{"key":"%s","weight":"heavy","id":%d}' % (given, id_),
                value,
            ]
            value = self.chance.choice(bad)
            given = None if value is bad[-1] else given
        producer.send("events", key=given, value=value)

    @contextmanager
    def feeding(self, *, poison: float = 0.0) -> Iterator[None]:
        """Write some events four times a second while the block makes faults."""
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(FEED_SECONDS):
                self.feed(poison=poison)

        feeder = threading.Thread(target=work)
        feeder.start()
        try:
            yield
        finally:
            ended.set()
            feeder.join(PATIENCE)

    def pause(self, seconds: float) -> None:
        """Let the broker stand still."""
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in self.broker.pids:
                os.kill(pid, number)
            if number is signal.SIGSTOP:
                threading.Event().wait(seconds)

    def heal(self, run: Run, *, within: float = HEALED) -> None:
        began = time.time()
        self.eventually(lambda: run.is_idle(began), run, within=within, what="no lag")

    def eventually(
        self, condition: Callable[[], object], run: Run, *, what: str, within: float = PATIENCE
    ) -> None:
        """Wait until a condition of the outside world holds, while the process runs."""
        deadline, pause = time.monotonic() + within, threading.Event()
        while not condition():
            ended = run.process.poll()
            if ended is not None or time.monotonic() > deadline:
                why = f"not within {within:g} s" if ended is None else f"it ended with {ended}"
                states = [(report.state, report.reason, report.lag) for report in run.last]
                raise AssertionError(f"{why}: {what}; {states}\n{self.said()}")
            pause.wait(0.2)

    def history(self, part: str) -> Any:
        """Read the run from the log, as a reader of committed records sees it."""
        found, reader = checker.History(), LogReader(self.kafka)
        for raw in reader.read("events"):
            id_ = id_of(raw.value)
            if id_ in self.poison:
                found.poison.append(id_)
            else:
                found.written.setdefault(raw.key.decode(), []).append(id_)
        for raw in reader.read("seen"):
            ids = found.seen.setdefault(raw.key.decode(), [])
            ids.append((json.loads(raw.value)["id"], len(ids) + 1))
        for raw in reader.read("counts"):
            found.state[raw.key.decode()] = json.loads(raw.value)["count"]
        for raw in reader.read("hurt.dead-letters"):
            headers = dict(raw.headers)
            if headers["penstock.part"].decode() == part:
                assert headers["penstock.reason"]
                assert headers["penstock.topic"] == b"events"
                found.dead.append(id_of(raw.value))
        return found

    def findings(self) -> list[str]:
        return [
            f"{part}: {finding}" for part in PARTS for finding in checker.check(self.history(part))
        ]

    def close(self) -> None:
        for run in self.runs:
            run.close()


def id_of(value: bytes) -> int:
    """Return the id of an event, which its bytes end with, also where they are no JSON."""
    digits = value.rpartition(b":")[2] if b'"id"' in value else value
    return int(bytes(byte for byte in digits if chr(byte).isdigit()))


@contextmanager
def arena(seed: int, home: Path) -> Iterator[Arena]:
    """Give an arena with a broker of its own."""
    with temporary_broker() as broker:
        made = Arena(broker, home, seed)
        try:
            yield made
        finally:
            made.close()
