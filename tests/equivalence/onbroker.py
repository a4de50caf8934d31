"""A random application on a real broker, killed or not, against the same one in the driver.

``python onbroker.py BOOTSTRAP NAME SEED`` runs it until SIGTERM; ``FAILPOINT=name:n`` in the
environment makes it kill itself at the n-th time it comes by that point.
"""

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

from penstock import services
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.records.codec import JsonCodec
from penstock.core.settings.settings import KafkaSettings
from penstock.machine.places import Places

HERE = Path(__file__).parent
crashes = SimpleNamespace(**runpy.run_path(str(HERE / "crashes.py")))
workers = SimpleNamespace(**runpy.run_path(str(HERE.parent / "chaos" / "chaosworker.py")))
kit = crashes.kit

PATIENCE = 120.0


class OnBroker:
    """One application, its records on the broker."""

    def __init__(self, kafka: Connection, name: str, seed: int, *, number: int = 40) -> None:
        self.kafka = kafka
        self.name = name
        self.plan = plan_of(seed)
        self.made = kit.RandomApp(self.plan, name)
        self.signs = self.plan.signs(number=number)
        # Kept, as each has a client of its own and is asked several times a second.
        self._topics, self._groups = Topics(kafka), Groups(kafka)
        self._reader = LogReader(kafka)
        self._topics.declare(self.made.app.graph.topics())

    def feed(self) -> None:
        """Write all records, in their order in each stream."""
        codec = JsonCodec(self.made.inputs["left"].record)
        with Producer(self.kafka) as producer:
            for stream, sign in self.signs:
                topic = self.made.inputs[stream].topic.name
                producer.send(topic, key=codec.key(sign), value=codec.encode(sign))

    def expected(self) -> dict[str, Any]:
        """Return what the driver shows of the same records."""
        run = crashes.Run(self.plan, deaths=None, name=self.name, away_seconds=0)
        run.pipe(self.signs)
        for _ in range(8):
            run.pass_time(200)
        return run.shown()

    def found(self) -> dict[str, Any]:
        """Return what a reader of committed records sees."""
        return kit.shown(self.made, self._records)

    def wait(self, expected: dict[str, Any], *, giving_up: Callable[[], bool] = bool) -> list[str]:
        """Wait until it has handled all; return how it differs from what was expected then."""
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while not (self._settled() and self.found() == expected):
            if time.monotonic() > deadline or giving_up():
                break
            pause.wait(0.2)
        found = self.found()
        return [
            f"{place}:\n   driver {expected.get(place)}\n   broker {found.get(place)}"
            for place in sorted(expected.keys() | found.keys())
            if expected.get(place) != found.get(place)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it in a thread of this process."""
        stop, errors = threading.Event(), list[BaseException]()

        def run() -> None:
            try:
                run_services(self.kafka.bootstrap, self.made, stop)
            except BaseException as error:  # noqa: BLE001 - told below
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE)
        assert errors == []

    def killed(self, expected: dict[str, Any], *, chance: random.Random, rounds: int) -> list[str]:
        """Let it be killed at so many points, one after the other; return how it differs then."""
        points = ["after poll", "after produce", "before offsets", "before commit", "after commit"]
        for number in range(rounds + 1):
            last = number == rounds
            point = "in restore" if number and chance.random() < 0.3 else chance.choice(points)
            fuse = chance.randint(1, 60 if point in ("after produce", "in restore") else 3)
            worker = self._start("" if last else f"{point}:{fuse}")
            try:
                gone = lambda found=worker: found.poll() is not None  # noqa: E731
                found = self.wait(expected, giving_up=gone)
                assert not (last and gone()), f"it ended with {worker.returncode}"
            finally:
                worker.kill()
                worker.wait(PATIENCE)
        return found

    def _start(self, failpoint: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, __file__, self.kafka.bootstrap, self.name, str(self.plan.seed)]
        return subprocess.Popen(program, env=os.environ | {"FAILPOINT": failpoint})

    def _settled(self) -> bool:
        for part in self.made.app.graph.parts:
            lags = self._groups.lag(f"{self.name}.{part.name}")
            wanted = sum(len(self._topics.ends(data.topic.name)) for data in part.reads)
            empty = wanted - len(lags)  # a partition without records has no offset
            if any(each.lag for each in lags.values()) or empty > wanted // 2:
                return False
        return True

    def _records(self, topic: str) -> Iterator[Any]:
        for batch in self._reader.batches(topic):
            yield from batch


def plan_of(seed: int) -> Any:
    """Return the plan of a seed for an engine whose clock is not the test's."""
    return kit.Plan.draw(seed, clocked=False, waits=("20ms", "50ms"), tries=2)


def run_services(bootstrap: str, made: Any, stop: threading.Event) -> None:
    chosen = workers.settings("")
    reached = KafkaSettings(bootstrap=bootstrap, request_timeout=chosen.kafka.request_timeout)
    site = Site(
        settings=chosen,
        places=Places(Path.cwd()),
        connection=Connection(bootstrap, reached),
        stop=stop,
        report=lambda _: None,
    )
    services.run(made.app.graph, made.services, site)


def main() -> None:
    bootstrap, name, seed = sys.argv[1:]
    if failpoint := os.environ.get("FAILPOINT"):
        where, _, hits = failpoint.partition(":")
        workers.plant(where, int(hits))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run_services(bootstrap, kit.RandomApp(plan_of(int(seed)), name), stop)


if __name__ == "__main__":
    main()
