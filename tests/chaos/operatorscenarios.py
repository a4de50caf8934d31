"""Joins, patterns, life cycles, actors and questions, killed while records flow.

What readers of committed records see in the end is compared, in both directions, with what the
driver gives for the same records, and with a plain recount of the joins.
"""

import os
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.records.codec import JsonCodec
from penstock.errors import TransientError
from penstock.testing import Driver
from penstock.testing.broker import temporary_broker

HERE = Path(__file__).parent
kit = SimpleNamespace(**runpy.run_path(str(HERE / "operatorapp.py")))

PATIENCE = 120.0
WITHDRAWN = ("penstock.withdrawn", b"true")
POINTS = {
    "after poll": 20,
    "after state write": 300,
    "after produce": 2_000,
    "before offsets": 6,
    "before commit": 6,
    "after commit": 12,
    "in restore": 100,
}
"""Where it dies, and after how many hits at most."""
Scale = float
Outcome = tuple[list[str], dict[str, object]]


class Unavailable(Exception):  # noqa: N818 - as the other scenarios call it
    """Never raised: there is nothing that these need and a machine may lack."""


class Killed:
    """One application on a broker: fed in portions, killed after each of them."""

    def __init__(self, kafka: Connection, name: str, seed: int, *, number: int) -> None:
        self.kafka, self.name = kafka, name
        self.made = kit.Everything(name)
        self.chance = random.Random(seed)
        self.records = list(self.made.records(seed, number))
        self.outputs = [*self.made.ordered, *self.made.standing]
        self.deaths: list[str] = []
        self._topics, self._groups = Topics(kafka), Groups(kafka)
        self._reader = LogReader(kafka)
        self._topics.declare(self.made.app.graph.topics())

    def expected(self) -> dict[str, Any]:
        """Return what the driver gives for the same records."""
        driver = Driver(self.made.app)
        for name, several in groupby(self.records, key=itemgetter(0)):
            driver.pipe(self.made.inputs[name], *(each for _, each in several))
        assert not driver.dead_letters(), "nothing in it is wrong"
        assert not driver.late_records(), "nothing in it is late"
        return self._shown(driver.read_raw)

    def found(self) -> dict[str, Any]:
        """Return what readers of committed records see."""
        return self._shown(lambda data: self._reader_of(data.topic.name))

    def wrong(self, expected: dict[str, Any]) -> list[str]:
        """Return how what is found differs from what was expected, and from the recount."""
        found = self.found()
        compared = [
            (expected, found, "the driver"),
            (self._recounted(), found, "the recount"),
        ]
        return [
            f"{place}: only {who} gives {_most(wanted[place] - got[place])}; "
            f"only the services give {_most(got[place] - wanted[place])}"
            for wanted, got, who in compared
            for place in wanted
            if wanted[place] != got[place]
        ]

    def play(self, *, kills: int, directory: str, hurt: Callable[[], None] | None = None) -> None:
        """Feed it in portions, let it die in each; then let it end its work."""
        portions = _cut(self.records, kills + 1)
        for number, portion in enumerate(portions):
            self._feed(portion)
            last = number == kills
            state_dir = directory if self.chance.random() < 0.5 else ""
            if last:
                worker = self._start("", state_dir)
            else:
                point = self.chance.choice([*POINTS] if number else [*POINTS][:-1])
                worker = self._start(f"{point}:{self.chance.randint(1, POINTS[point])}", state_dir)
                self.deaths.append(f"{point}{' on disk' if state_dir else ''}")
            try:
                if hurt is not None and number == kills // 2:
                    hurt()
                gone = lambda found=worker: found.poll() is not None  # noqa: E731
                self._wait(lambda found=gone: found() or self._settled(), last=last)
                if last:
                    assert not gone(), f"it ended by itself with {worker.returncode}"
                    worker.send_signal(signal.SIGTERM)
                    assert worker.wait(PATIENCE) == 0
            finally:
                worker.kill()
                worker.wait(PATIENCE)

    def hand_over(self, *, kills: int, directory: str) -> None:
        """Feed it while two workers share it; of these one is killed again and again."""
        # Rows first: a record finds those that are there, and both come while they are read.
        self._feed(each for each in self.records if each[0] == "rows")
        portions = _cut([each for each in self.records if each[0] != "rows"], kills + 1)
        workers = [self._start("", f"{directory}/{number}", standby="on") for number in range(2)]
        try:
            for number, portion in enumerate(portions):
                self._feed(portion)
                if number == kills:
                    break
                threading.Event().wait(self.chance.uniform(1, 12))
                fallen = self.chance.randrange(2)
                assert workers[fallen].poll() is None, "it ended by itself"
                workers[fallen].kill()
                workers[fallen].wait(PATIENCE)
                self.deaths.append(f"worker {fallen}")
                threading.Event().wait(self.chance.choice([0, 5]))
                where = f"{directory}/{fallen}"
                workers[fallen] = self._start("", where, standby="on")
            self._wait(self._settled, last=True)
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            assert [worker.wait(PATIENCE) for worker in workers] == [0, 0]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait(PATIENCE)

    def _feed(self, portion: Iterable[tuple[str, Any]]) -> None:
        codecs = {name: JsonCodec(data.record) for name, data in self.made.inputs.items()}
        with Producer(self.kafka) as producer:
            for name, each in portion:
                topic, codec = self.made.inputs[name].topic.name, codecs[name]
                producer.send(topic, key=codec.key(each), value=codec.encode(each))

    def _start(
        self, failpoint: str, state_dir: str, *, standby: str = "off"
    ) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(HERE / "operatorapp.py"), self.kafka.bootstrap, self.name]
        given = {"FAILPOINT": failpoint, "STATE_DIR": state_dir, "STANDBY": standby}
        return subprocess.Popen(program, env=os.environ | given)

    def _wait(self, condition: Callable[[], bool], *, last: bool) -> None:
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while not condition():
            if time.monotonic() > deadline:
                left = f"{self._behind()}, after {self.deaths}"
                raise AssertionError(f"not done within {PATIENCE:g} s: {left}")
            pause.wait(0.2 if last else 0.1)

    def _settled(self) -> bool:
        """Return whether every part has read all that is there for it, twice in a row."""
        return not self._behind() and not self._behind()

    def _behind(self) -> list[str]:
        """Return the first part that has not read all that is there for it, and what it has not."""
        try:
            for part in self.made.app.graph.parts:
                ends = {
                    (data.topic.name, number): end
                    for data in part.reads
                    for number, (_, end) in self._topics.ends(data.topic.name).items()
                    if end
                }
                lags = self._groups.lag(f"{self.name}.{part.name}")
                behind = [at for at in ends if at not in lags or lags[at].lag]
                if behind:
                    return [f"{part.name}: {at} {lags.get(at)}" for at in behind]
        except TransientError as error:
            # A client that lost its coordinator with the broker may wait on it for ever.
            self._topics, self._groups = Topics(self.kafka), Groups(self.kafka)
            return [str(error)]
        return []

    def _reader_of(self, topic: str) -> Iterable[Any]:
        for batch in self._reader.batches(topic):
            yield from batch

    def _shown(self, read: Callable[[Any], Iterable[Any]]) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for data in self.made.standing:
            stands: Counter[str] = Counter()
            for raw in read(data):
                value = msgspec.json.decode(raw.value())
                value.pop("withdrawn", None)
                value["partition"] = raw.partition()
                taken = WITHDRAWN in (raw.headers() or ())
                stands[str(sorted(value.items()))] += -1 if taken else 1
            shown[self._label(data)] = stands
        for data in self.made.ordered:
            keys: dict[bytes, list[bytes]] = {}
            for raw in read(data):
                keys.setdefault(raw.key(), []).append(raw.value())
            shown[self._label(data)] = Counter(
                f"{key!r} {number}: {value!r}"
                for key, values in keys.items()
                for number, value in enumerate(values)
            )
        return shown

    def _label(self, data: Any) -> str:
        return str(data.name).rpartition(".")[2]

    def _recounted(self) -> dict[str, Counter[str]]:
        """Return what the joins must be that hold nothing back, by looking at all pairs."""
        sides: dict[str, list[Any]] = {"left": [], "right": [], "rows": []}
        for name, each in self.records:
            sides[name].append(each)
        return {"hasty": _outer(sides["left"], sides["right"])}


def _outer(left: list[Any], right: list[Any]) -> Counter[str]:
    by_key: dict[str, tuple[list[Any], list[Any]]] = {}
    for number, side in enumerate((left, right)):
        for each in side:
            by_key.setdefault(each.key, ([], []))[number].append(each)
    found: Counter[str] = Counter()
    for key, (ones, others) in by_key.items():
        pairs = [(a, b) for a, b in product(ones, others) if abs(a.at - b.at) <= 10_000]
        pairs += [(a, None) for a in ones if all(a is not each for each, _ in pairs)]
        pairs += [(None, b) for b in others if all(b is not each for _, each in pairs)]
        for a, b in pairs:
            at = max(each.at for each in (a, b) if each)
            row = {
                "at": _text(at),
                "key": key,
                "partition": kit.partition_of(key.encode(), kit.PARTITIONS),
            }
            row |= {"a": a.number if a else None, "b": b.number if b else None}
            found[str(sorted(row.items()))] += 1
    return found


def _text(millis: int) -> str:
    """Return an event time as results have it."""
    text = datetime.fromtimestamp(millis / 1000, UTC).isoformat()
    return text.replace("+00:00", "Z")


def _most(several: Counter[str]) -> str:
    return f"{sum(several.values())} such as {sorted(several)[:2]}"


def _cut(records: list[Any], number: int) -> list[list[Any]]:
    size = -(-len(records) // number)
    return [records[start : start + size] for start in range(0, len(records), size)]


def operators_killed(seed: int, scale: Scale) -> Outcome:
    """Joins, a pattern, a life cycle, actors and questions: killed eight times, memory and disk."""
    with temporary_broker() as broker:
        return _played(broker.connection, seed, number=round(20_000 * scale), kills=8)


def operators_without_broker(seed: int, scale: Scale) -> Outcome:
    """The same, and the broker is killed too, in the middle."""
    with temporary_broker() as broker:

        def hurt() -> None:
            threading.Event().wait(random.Random(seed).uniform(2, 8))
            broker.kill()
            threading.Event().wait(1)
            broker.ensure()

        return _played(broker.connection, seed, number=round(20_000 * scale), kills=4, hurt=hurt)


def operators_handed_over(seed: int, scale: Scale) -> Outcome:
    """Two workers with copies of each other's state: one is killed six times, the other goes on."""
    with temporary_broker() as broker, tempfile.TemporaryDirectory() as directory:
        killed = Killed(broker.connection, f"shared-{seed}", seed, number=round(20_000 * scale))
        killed.hand_over(kills=6, directory=directory)
        facts = {"records": len(killed.records), "deaths": ", ".join(killed.deaths)}
        return killed.wrong(killed.expected()), facts


def _played(kafka: Connection, seed: int, *, number: int, kills: int, **options: Any) -> Outcome:
    killed = Killed(kafka, f"killed-{seed}", seed, number=number)
    with tempfile.TemporaryDirectory() as directory:
        killed.play(kills=kills, directory=directory, **options)
    facts = {"records": len(killed.records), "deaths": "; ".join(killed.deaths)}
    return killed.wrong(killed.expected()), facts


SCENARIOS: dict[str, Callable[[Any, Scale], Outcome]] = {
    scenario.__name__: scenario
    for scenario in (operators_killed, operators_without_broker, operators_handed_over)
}


def run(name: str, seed: int, *, scale: Scale = 1.0) -> Outcome:
    """Play a scenario; return what is wrong, and facts worth telling."""
    return SCENARIOS[name](seed, scale)
