"""Every part that is declared or kept per key, in one application that can be killed.

``python operatorapp.py BOOTSTRAP APP`` runs it until SIGTERM. ``FAILPOINT=name:n`` and ``STATE_DIR``
in the environment are those of chaosworker.py; ``STANDBY=on`` lets it keep copies of others' state.

What it gives depends on the records alone, not on when they are handled, so that the driver is the
recount. Where the order of several streams would matter, only what stands in the end is compared.
"""

import os
import random
import runpy
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock import App, EventTime, Output, State, Timer, Timers, record, services
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.partitioner import partition_of
from penstock.core.settings.settings import KafkaSettings
from penstock.core.status.report import PartReport
from penstock.lifecycles import lifecycle
from penstock.machine.places import Places
from penstock.patterns import pattern
from penstock.questions import Unanswered, ask

HERE = Path(__file__).parent
PARTITIONS = 2
KEYS = 40
DISORDER = 5_000
LATE = 12_000
"""So many milliseconds more than the disorder some records are out of order."""


@record(key="key", time="at")
class Sign:
    key: str
    at: int
    number: int


@record(key="key", time="since")
class Row:
    key: str
    since: int
    value: int


@record(key="key")
class Told:
    key: str
    text: str


@record(key="number")
class Question:
    number: int
    id: str


@record()
class Answer:
    id: str


class Everything:
    """The application, under a name of its own."""

    def __init__(self, name: str) -> None:
        self.app = App(name)
        self.name = name
        # Nobody is idle here: what is late would depend on the clock.
        times = EventTime(disorder=f"{DISORDER}ms", idle_after=None)
        made = {"partitions": PARTITIONS, "event_time": times}
        self.left = self.app.stream(f"{name}.left", Sign, **made)
        self.right = self.app.stream(f"{name}.right", Sign, **made)
        self.rows = self.app.table(f"{name}.rows", Row, history="1d", partitions=PARTITIONS)
        self.inputs = {"left": self.left, "right": self.right, "rows": self.rows}
        self.ordered: list[Any] = []
        """Streams of which the order of each key is certain."""
        self.standing: list[Any] = []
        """Streams of which what stands in the end is certain: withdrawn results are taken off."""
        self._joins()
        self._pattern()
        self._life()
        self._actor()
        self._questions()

    def _joins(self) -> None:
        left, right = self.left, self.right
        looked = left.join(self.rows, on="key", how="left", wait="30s", names=("a", "row"))
        self._add("looked", looked.select(key="key", number="a.number", value="row.value"))
        paired = left.join(
            right, on="key", how="outer", within="10s", lateness="10s", names=("a", "b")
        ).select(key="key", a="a.number", b="b.number")
        self._add("paired", paired)
        self._add("hasty", paired.results("early"))
        self._add("once", left.deduplicate(by="number", within="1d"))
        self._add("moved", left.repartition(by="number"))

    def _pattern(self) -> None:
        rising = (
            pattern(by="key", within="40s", lateness="30s")
            .first("low", self.left, where="number < 500")
            .then("high", self.right, where="number > low.number")
            .never("luck", self.left, where="number % 7 = 3")
            .select(key="low.key", low="low.number", high="high.number")
        )
        self._add("rising", rising)
        self._add("rash", rising.results("early"))

    def _life(self) -> None:
        life = (
            lifecycle("well", "odd", "bad")
            .on(self.left, "well -> odd", where="number % 5 = 1")
            .on(self.left, "odd -> bad", where="number % 3 = 0")
            .on(self.left, "bad -> well", where="number % 4 = 0")
            .stays(self.left, "odd", where="number % 2 = 0")
            .after("20s", "odd -> well")
            .rests("well", "bad")
        )
        self._add("life", life, standing=False)

    def _add(self, label: str, declared: Any, *, standing: bool = True) -> None:
        made = self.app.stream(
            f"{self.name}.{label}", declared, on="services", partitions=PARTITIONS
        )
        (self.standing if standing else self.ordered).append(made)

    def _actor(self) -> None:
        told = self.app.stream(f"{self.name}.kept", Told, partitions=PARTITIONS)
        self.ordered.append(told)

        @self.app.actor(reads=self.left, writes=told, idle_after="1s")
        class Keeper:
            seen: int = 0
            last: list[int] = []  # noqa: RUF012 - a field

            def receive(self, sign: Sign, timers: Timers) -> Told:
                self.seen += 1
                self.last = [*self.last[-3:], sign.number]
                timers.set("quiet", after="12s")
                return Told(sign.key, f"{self.seen} {self.last}")

            def on_timer(self, timer: Timer) -> Told:
                return Told(timer.key, f"quiet at {timer.due_at}: {self.seen} {self.last}")

    def _questions(self) -> None:
        told = self.app.stream(f"{self.name}.answered", Told, partitions=PARTITIONS)
        self.standing.append(told)
        questions = self.app.questions(
            f"{self.name}.questions", Question, answers=Answer, timeout="1h", partitions=PARTITIONS
        )

        @self.app.service(answers=questions)
        def clerk(question: Question, seen: State[int]) -> Answer:
            seen.set(seen.get(0) + 1)
            return Answer(question.id)

        @self.app.actor(reads=self.left, writes=told, asks=questions)
        class Asker:
            asked: int = 0
            answered: int = 0
            key: str = ""

            def receive(self, sign: Sign) -> Output[Question]:
                self.asked, self.key = self.asked + 1, sign.key
                return ask(questions, Question(sign.number % 50, f"{sign.key} {self.asked}"))

            def receive_answer(self, answer: Answer) -> list[Told]:
                self.answered += 1
                # How far it had asked by then is by chance; how many answers there are, is not.
                return [Told(self.key, f"{answer.id}"), Told(self.key, f"{self.answered} answers")]

            def receive_silence(self, silence: Unanswered[Question]) -> Told:
                return Told(self.key, f"nobody answered {silence.question.id}")

    def records(self, seed: int, number: int) -> Iterator[tuple[str, Any]]:
        """Give records by chance, in the order of the log, with the inputs that they go to.

        The last ones move event time of every partition past all that was open.
        """
        chance, now = random.Random(seed), 100_000
        for id_ in range(number):
            now += chance.choice([0, 0, 100, 400, 1_500])
            at = now - chance.choice([0, 0, 0, DISORDER, DISORDER + LATE])
            key = f"k{chance.randrange(KEYS)}"
            if chance.random() < 0.1:
                yield "rows", Row(key, now, id_)
            else:
                yield chance.choice(["left", "left", "right"]), Sign(key, at, id_ % 1000)
        for step in range(1, 4):
            for key in (_key_of(each) for each in range(PARTITIONS)):
                at = now + step * 1_000_000
                yield "left", Sign(key, at, 0)
                yield "right", Sign(key, at, 0)
                yield "rows", Row(key, at, 0)


def _key_of(partition: int) -> str:
    """Return a key of a partition that no other record has."""
    names = (f"end{number}" for number in range(100))
    return next(each for each in names if partition_of(each.encode(), PARTITIONS) == partition)


def main() -> None:
    bootstrap, name = sys.argv[1:]
    workers = SimpleNamespace(**runpy.run_path(str(HERE / "chaosworker.py")))
    if failpoint := os.environ.get("FAILPOINT"):
        where, _, hits = failpoint.partition(":")
        workers.plant(where, int(hits))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = workers.settings(os.environ.get("STATE_DIR", ""))
    standby = os.environ.get("STANDBY", "off")
    settings = replace(settings, services=replace(settings.services, standby=standby))
    reached = KafkaSettings(bootstrap=bootstrap, request_timeout=settings.kafka.request_timeout)
    last: dict[str, PartReport] = {}
    site = Site(
        settings=settings,
        places=Places(Path.cwd()),
        connection=Connection(bootstrap, reached),
        stop=stop,
        report=lambda report: last.update({report.part: report}),
    )
    graph = Everything(name).app.graph
    services.run(graph, [part.name for part in graph.parts], site)
    if wrong := [part for part, report in last.items() if not report.counts.balanced]:
        sys.exit(f"what became of their records does not add up: {wrong}")


if __name__ == "__main__":
    main()
