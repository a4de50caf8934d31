"""A service whose inputs and promise change between its runs: its state counts each record once."""

import random

import pytest

from penstock import App, State, record
from penstock.core.rules.check import verified
from penstock.testing.clock import START_AT, ManualClock
from penstock.testing.engine import MemoryEngine
from penstock.testing.memorylog import MemoryLog

SEEDS = 80
RUNS = 8


class Death(BaseException):
    """The end of a process."""


@record(key="word")
class Word:
    word: str


class Bench:
    """One log, and a service that is another one in each of its runs."""

    def __init__(self, seed):
        self.chance = random.Random(f"changes {seed}")
        self.fuse = None
        self.clock = ManualClock(START_AT)
        graph = self.graph("exactly_once", "xy")
        self.log = MemoryLog(graph.topics(), clock=self.clock)

    def graph(self, delivery, names):
        app = App("demo")
        streams = {name: app.stream(name, Word, partitions=1) for name in "xy"}
        out = app.stream("out", Word, partitions=1)

        @app.service(
            reads=tuple(streams[name] for name in names), writes=out, name="s", delivery=delivery
        )
        def count(word: Word, number: State[int]) -> Word:
            self.hit("call")
            number.set(number.get(0) + 1)
            return word

        return verified(app.graph)

    def hit(self, _):
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse <= 0:
                self.fuse = None
                raise Death

    def fill(self):
        for _ in range(self.chance.randint(0, 5)):
            name = self.chance.choice("xy")
            self.log.append(name, key=b"k", value=b'{"word":"k"}', partition=0)

    def run(self, delivery, names, *, dies=True):
        graph, auto_commit = self.graph(delivery, names), self.chance.random() < 0.5
        engine = MemoryEngine(
            graph, self.log, clock=self.clock, auto_commit=auto_commit, at=self.hit
        )
        self.fuse = self.chance.choice([None, 1, 2, 3, 5, 8, 13]) if dies else None
        try:
            engine.restart()
            engine.flow()
            engine.stop(None)
        except Death:
            engine.crash(None)
        self.fuse = None

    def counted(self):
        kept = {raw.key(): raw.value() for raw in self.log.read(("demo.s.changelog", 0))}
        return int(kept.get(b"number\x00k") or 0)

    def written(self):
        return sum(len(self.log.read((name, 0))) for name in "xy")


@pytest.mark.parametrize("promises", [("exactly_once", "at_least_once"), ("at_most_once",)])
def test_a_service_that_is_changed_forgotten_and_killed_counts_each_record_once(promises):
    for seed in range(SEEDS):
        bench = Bench(seed)
        for _ in range(RUNS):
            if "at_most_once" not in promises and bench.chance.random() < 0.2:
                bench.log.forget("demo.s")
            bench.fill()
            delivery = bench.chance.choice([*promises, "exactly_once"])
            bench.run(delivery, bench.chance.choice(["x", "y", "xy"]))
        bench.run("exactly_once", "xy", dies=False)
        if "at_most_once" in promises:
            assert bench.counted() <= bench.written(), seed
        else:
            assert bench.counted() == bench.written(), seed
