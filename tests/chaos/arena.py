"""Where services are hurt: a broker, workers in processes of their own, a feed, and the history."""

import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import KafkaSettings
from penstock.core.status.report import PartReport, decode_report
from penstock.errors import TransientError
from penstock.testing.broker import temporary_broker

HERE = Path(__file__).parent
workers = SimpleNamespace(**runpy.run_path(str(HERE / "chaosworker.py")))
checker = SimpleNamespace(**runpy.run_path(str(HERE / "checker.py")))

PATIENCE = 120.0
HEALED = 30.0
"""Seconds after the last fault within which all must be handled (I6)."""
_BATCH = 500


class Worker:
    """One process of the service."""

    def __init__(
        self, bootstrap: str, name: str, environment: dict[str, str], *, inside: Sequence[str] = ()
    ) -> None:
        self.reports: list[PartReport] = []
        self.process = subprocess.Popen(
            [*inside, sys.executable, str(HERE / "chaosworker.py"), bootstrap, name],
            stdout=subprocess.PIPE,
            env=os.environ | environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            if (report := decode_report(line)).part == "count":
                self.reports.append(report)

    @property
    def partitions(self) -> int:
        """How many partitions it said last that it runs."""
        return self.reports[-1].detail["partitions"].count("[") if self.reports else 0

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.kill()
        return code


class Arena:
    """A broker with one application; every worker that was started ends with the arena."""

    def __init__(self, broker: Any, name: str, seed: int, *, keys: int = 1000) -> None:
        self.broker = broker
        self.kafka: Connection = broker.connection
        self.chance = random.Random(seed)
        self.app = workers.Counting(name)
        self.name = name
        self.workers: list[Worker] = []
        self.written = 0
        self.written_at: dict[int, float] = {}
        """When each id was written, in seconds since the epoch."""
        self.poison: list[int] = []
        self.deleted: dict[str, list[int]] = {}
        """The ids of events that were deleted from the log, by key and in order."""
        self.allowances: list[Callable[[Any], None]] = []
        """What a scenario changes in its history before it is judged: what it knows to be gone."""
        self.environment: dict[str, str] = {}
        self._keys = keys
        Topics(self.kafka).declare(self.app.app.graph.topics())

    def start(self, *, inside: Sequence[str] = (), **environment: str) -> Worker:
        """Start one more worker; ``inside``: the command that puts it into a place of its own."""
        environment = self.environment | environment
        worker = Worker(self.kafka.bootstrap, self.name, environment, inside=inside)
        self.workers.append(worker)
        return worker

    def running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.alive]

    def feed(
        self, count: int, *, seconds: float = 0.0, hot: float = 0.0, poison: float = 0.0
    ) -> None:
        """Write so many events, spread over a time; some on one key, some of them poison.

        Without a time they are written key by key, so that as many as there are keys meet each.
        """
        began, chance = time.monotonic(), random.Random(self.chance.random())
        pause = threading.Event()
        with Producer(self.kafka) as producer:
            for number in range(count):
                drawn = chance.randrange(self._keys) if seconds else number % self._keys
                key = "hot" if chance.random() < hot else f"k{drawn}"
                self._write(producer, chance, key, poison=poison)
                if seconds and number % _BATCH == 0:
                    pause.wait(max(0.0, began + seconds * number / count - time.monotonic()))

    def _write(self, producer: Producer, chance: random.Random, key: str, *, poison: float) -> None:
        self.written += 1
        self.written_at[self.written] = time.time()
        id_, topic = self.written, self.app.events.topic.name
        if chance.random() < poison:
            self.poison.append(id_)
            value = chance.choice(
                [
                    b"\xff%d" % id_,
                    b'{"key":5,"id":%d}' % id_,
                    b'{"key":"%s","id":%d}' % (key.encode(), -id_),
                    b"[" * 1000 + b"%d" % id_,
                    b'{"key":"%s","id":NaN,"was":%d}' % (key.encode(), id_),
                    None,
                ]
            )
            if value is None:  # what is wrong with it is that it has no key
                value = msgspec.json.encode({"key": key, "id": id_})
                producer.send(topic, key=None, value=value)
                return
        else:
            value = msgspec.json.encode({"key": key, "id": id_})
        producer.send(topic, key=key.encode(), value=value)

    @contextmanager
    def feeding(self, count: int, **options: Any) -> Iterator[None]:
        """Feed in a thread of its own while the block makes faults."""
        feeder = threading.Thread(target=self.feed, args=(count,), kwargs=options)
        feeder.start()
        try:
            yield
        finally:
            feeder.join(PATIENCE * 3)

    def pause(self, low: float, high: float) -> None:
        """Let a random time pass: the faults are what is random here, not the waiting."""
        threading.Event().wait(self.chance.uniform(low, high))

    def heal(self, *, within: float = HEALED) -> float:
        """Wait until the group has handled everything; return the seconds it took."""
        began = time.monotonic()
        eventually(self.caught_up, within=within, what="no lag")
        return time.monotonic() - began

    def caught_up(self) -> bool:
        try:
            found = Groups(self.kafka).lag(f"{self.name}.count")
        except TransientError:  # a broker that is only just coming back: asked again
            return False
        return len(found) == workers.PARTITIONS and not any(lag.lag for lag in found.values())

    def history(self) -> Any:
        """Read the run from the log, as a reader of committed records sees it."""
        found = checker.History(poison=sorted(self.poison))
        found.written = {key: list(ids) for key, ids in self.deleted.items()}
        reader, bad = LogReader(self.kafka), set(self.poison)
        for raw in reader.read(self.app.events.topic.name):
            id_ = _id_of(raw.value)
            if id_ not in bad:
                found.written.setdefault(raw.key.decode(), []).append(id_)
        for raw in reader.read(self.app.seen.topic.name):
            seen = msgspec.json.decode(raw.value)
            found.seen.setdefault(raw.key.decode(), []).append((seen["id"], seen["count"]))
        for raw in reader.read(self.app.changelog):
            if raw.key.startswith(b"total\x00"):
                found.state[raw.key[6:].decode()] = int(raw.value)
        for raw in reader.read(self.app.app.graph.dead_letters.name):
            found.dead.append(_id_of(raw.value))
        return found

    def delete_events(self) -> int:
        """Delete events up to a random offset past the committed ones; return how many.

        Their ids are remembered, for the log cannot tell them any more.
        """
        topic, topics = self.app.events.topic.name, Topics(self.kafka)
        committed = Groups(self.kafka).lag(f"{self.name}.count")
        ends = topics.ends(topic)
        chosen = {
            number: self.chance.randint(min(committed[topic, number].committed, high), high)
            for number, (_, high) in ends.items()
        }
        gone = 0
        for raw in LogReader(self.kafka).read(topic, end=Offset(chosen)):
            self.deleted.setdefault(raw.key.decode(), []).append(_id_of(raw.value))
            gone += 1
        topics.trim(topic, chosen)
        return gone

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()


def _id_of(value: bytes) -> int:
    """Return the id in an event, also in one that is no JSON."""
    digits = value.rpartition(b":")[2] if b'"id"' in value else value
    return int(bytes(byte for byte in digits if chr(byte).isdigit()))


def eventually(condition: Callable[[], object], *, within: float, what: str) -> None:
    """Wait until a condition of the outside world holds."""
    deadline, pause = time.monotonic() + within, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}")
        pause.wait(0.1)


@contextmanager
def arena(seed: int, name: str, *, brokers: int = 1, **options: Any) -> Iterator[Arena]:
    """Give an arena with a broker of its own, or three."""
    with temporary_broker(KafkaSettings(brokers=brokers, replication=brokers)) as broker:
        made = Arena(broker, name, seed, **options)
        try:
            yield made
        finally:
            made.close()
