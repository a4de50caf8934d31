"""A word count for tests of services: in this process, or in one of its own that can be killed.

``python service_worker.py BOOTSTRAP APP DELIVERY SERVICE [SERVICE ...]`` runs services until SIGTERM and
writes their reports to standard output, one JSON document per line.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Self

from penstock import App, State, Timer, Timers, record, services
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import (
    KafkaSettings,
    Secret,
    ServiceSettings,
    ServingSettings,
    Settings,
)
from penstock.core.status.report import PartReport, decode_report, encode_report
from penstock.machine.places import Places

SETTINGS = Settings(
    serving=ServingSettings(
        secret=Secret("of the processes of a test")
    ),  # so that no file is made for it
    kafka=KafkaSettings(request_timeout=timedelta(seconds=15)),
    # Short, so that a test does not wait long for what it has killed.
    services=ServiceSettings(
        session_timeout=timedelta(seconds=3), stop_timeout=timedelta(seconds=4)
    ),
)
PATIENCE = 90.0
LOOKS = (0.02, 0.02, 0.05, 0.05, 0.1)
"""The pauses between looks, in seconds; the last one stays. A look often reads a whole topic."""
STATE_DIR = "STATE_DIR_OF_TEST"
STANDBY = "STANDBY_OF_TEST"
REMINDER = timedelta(seconds=1)


@record()
class Line:
    text: str


@record(key="word")
class Word:
    word: str
    weight: int = 1


@record(key="word")
class Count:
    word: str
    count: int


class WordCount:
    """The application, under a name of its own so that tests do not meet."""

    def __init__(self, name: str, *, delivery: Any = "exactly_once") -> None:
        self.app = App(name)
        self.name = name
        self.delivery = delivery
        self.lines = self.app.stream(f"{name}.lines", Line)
        self.words = self.app.stream(f"{name}.words", Word)
        self.counts = self.app.stream(f"{name}.counts", Count)

        @self.app.service(reads=self.lines, writes=self.words, delivery=delivery)
        def split(line: Line) -> Iterable[Word]:
            return [Word(word) for word in line.text.split()]

        @self.app.service(reads=self.words, writes=self.counts, delivery=delivery)
        def count(word: Word, total: State[int]) -> Count | None:
            if word.weight < 0:
                total.set(-1)
                raise ValueError(f"a weight of {word.weight}")
            total.set(total.get(0) + word.weight)
            return Count(word.word, total.get(0)) if word.weight else None

        self.bells = self.app.stream(f"{name}.bells", Count)

        @self.app.service(reads=self.words, writes=self.bells, delivery=delivery, name="remind")
        class Remind:
            def process(self, word: Word, seen: State[int], timers: Timers) -> None:
                seen.set(seen.get(0) + word.weight)
                timers.set("remind", after=REMINDER, time="processing")

            def on_timer(self, timer: Timer, seen: State[int]) -> Count:
                return Count(timer.key, seen.get(0))

        @self.app.service(reads=self.words, writes=self.counts, delivery=delivery)
        async def ask(word: Word, total: State[int]) -> Count:
            await asyncio.sleep(0.001)
            total.set(total.get(0) + word.weight)
            return Count(word.word, total.get(0))

        self.split, self.count, self.remind, self.ask = split, count, Remind, ask

    @property
    def dead_letters(self) -> str:
        return self.app.graph.dead_letters.name

    @property
    def reminders(self) -> str:
        return self.app.graph.changelog(self.remind).name

    @property
    def changelog(self) -> str:
        return self.app.graph.changelog(self.count).name


def declared(name: str, kafka: Connection, **options: Any) -> WordCount:
    """Return the application with its topics on the broker."""
    app = WordCount(name, **options)
    Topics(kafka).declare(app.app.graph.topics())
    return app


def send_words(kafka: Connection, app: WordCount, words: Iterable[str]) -> None:
    with Producer(kafka) as producer:
        for word in words:
            value = b'{"word":"%s"}' % word.encode()
            producer.send(app.words.topic.name, key=word.encode(), value=value)


def counted(kafka: Connection, app: WordCount) -> dict[str, list[int]]:
    """Return what a reader of committed records sees: the counts of each word, in order."""
    found: dict[str, list[int]] = {}
    for raw in LogReader(kafka).read(app.counts.topic.name):
        count = int((raw.value or b"").rpartition(b":")[2].strip(b"}"))
        found.setdefault((raw.key or b"").decode(), []).append(count)
    return found


def recounted(kafka: Connection, app: WordCount) -> dict[str, list[int]]:
    """Return what must have been counted: an independent recount of the input."""
    found: dict[str, list[int]] = {}
    for raw in LogReader(kafka).read(app.words.topic.name):
        counts = found.setdefault((raw.key or b"").decode(), [])
        counts.append(len(counts) + 1)
    return found


def differences(expected: dict[str, list[int]], found: dict[str, list[int]]) -> list[str]:
    """Compare both ways: what is missing, what is too much, what is out of order."""
    return [
        f"{word}: expected 1..{len(expected.get(word, []))}, found {found.get(word, [])[:5]}..."
        f" ({len(found.get(word, []))})"
        for word in sorted(expected.keys() | found.keys())
        if expected.get(word) != found.get(word)
    ]


def eventually(condition: Callable[[], object], *, what: str) -> None:
    """Wait until a condition of the outside world holds."""
    deadline, pauses = time.monotonic() + PATIENCE, chain(LOOKS, repeat(LOOKS[-1]))
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE:g}s in vain for: {what}")
        time.sleep(next(pauses))


def all_counted(kafka: Connection, app: WordCount) -> None:
    """Wait until a reader of committed records sees as many counts as there are words."""
    words = sum(map(len, recounted(kafka, app).values()))
    eventually(
        lambda: (
            committed_records(kafka, app.counts.topic.name) >= words
            and sum(map(len, counted(kafka, app).values())) >= words
        ),
        what=f"{words} words counted",
    )


def committed_records(kafka: Connection, topic: str) -> int:
    """Return how many offsets of a topic hold committed records, transaction marks included."""
    return sum(high - low for low, high in Topics(kafka).ends(topic, committed=True).values())


def on_disk(directory: str) -> Settings:
    """Return the settings with state on a disk."""
    services = replace(
        SETTINGS.services,
        state="disk",
        state_dir=str(directory),
        standby=os.environ.get(STANDBY, "off"),
    )
    return replace(SETTINGS, services=replace(services, snapshot_interval=timedelta(seconds=1)))


def site_of(
    kafka: Connection, *, report: Callable[[PartReport], None], settings: Settings = SETTINGS
) -> Site:
    reached = replace(kafka.settings, request_timeout=settings.kafka.request_timeout)
    return Site(
        settings=settings,
        places=Places(Path.cwd()),
        connection=Connection(kafka.bootstrap, reached),
        stop=threading.Event(),
        report=report,
    )


class InThread:
    """Services that run in a thread of the test, with everything they have reported."""

    def __init__(self, kafka: Connection, app: WordCount, *names: str, **options: Any) -> None:
        self.reports: list[PartReport] = []
        self.error: Any = None
        self.site = site_of(kafka, report=self.reports.append, **options)
        self._thread = threading.Thread(target=self._run, args=(app, names))

    def _run(self, app: WordCount, names: tuple[str, ...]) -> None:
        try:
            services.run(app.app.graph, names, self.site)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def last(self, part: str) -> PartReport | None:
        return next((found for found in reversed(self.reports) if found.part == part), None)

    def state(self, part: str) -> str:
        found = self.last(part)
        return found.state if found else ""

    def has(self, part: str, **counts: int) -> bool:
        """Whether the last report of a part counts this much."""
        found = self.last(part)
        return found is not None and all(
            getattr(found.counts, name) == value for name, value in counts.items()
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.site.stop.set()
        self.join()

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class InProcess:
    """Services in a process of their own; killed at the end of the block if still there."""

    def __init__(
        self, kafka: Connection, app: WordCount, *names: str, state_dir: str | Path = ""
    ) -> None:
        self.reports: list[PartReport] = []
        self._environment = os.environ | {STATE_DIR: str(state_dir)}
        program = [sys.executable, __file__, kafka.bootstrap, app.name, app.delivery]
        self._command = [*program, *names]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, env=self._environment
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.reports.append(decode_report(line))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        # Before its first report the process does not yet listen to the signal.
        eventually(lambda: self.reports, what="the process to run")
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.join(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()


def main() -> None:
    bootstrap, name, delivery, *names = sys.argv[1:]

    def report(found: PartReport) -> None:
        os.write(sys.stdout.fileno(), encode_report(found) + b"\n")

    directory = os.environ.get(STATE_DIR)
    site = site_of(
        Connection(bootstrap, KafkaSettings(bootstrap=bootstrap)),
        report=report,
        settings=on_disk(directory) if directory else SETTINGS,
    )
    signal.signal(signal.SIGTERM, lambda *_: site.stop.set())
    services.run(WordCount(name, delivery=delivery).app.graph, names, site)


if __name__ == "__main__":
    main()
