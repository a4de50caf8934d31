"""What pipelines write into the lake is there once, whatever dies and whatever is lost."""

import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import deltalake
import pytest
from pyspark.sql import DataFrame

from penstock.errors import ConfigurationError
from penstock.machine.process.lifeline import LIFELINE_VARIABLE
from penstock.pipelines.execution.engine import run_pipelines

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

DRIVER = Path(__file__).with_name("lake_driver.py")
kit = SimpleNamespace(**runpy.run_path(str(DRIVER)))
SEEDS = [int(seed) for seed in os.environ.get("PENSTOCK_CHAOS_SEEDS", "").split()]
NOW = datetime.now(UTC)
WAIT_SECONDS = 400


def ids(path: str) -> Counter:
    """Return the ids in a table, as a reader sees them that is not Spark; none: no table yet."""
    try:
        found = deltalake.DeltaTable(path).to_pyarrow_table(columns=["id"])
    except deltalake.exceptions.TableNotFoundError:
        return Counter()
    return Counter(found["id"].to_pylist())


class Arena:
    """The pipeline of ``lake_driver.py``: in processes that come and go, and at last in this."""

    def __init__(self, ground) -> None:
        self.ground = ground
        self.sent = 0
        self._out = ground.home / "driver.out"
        self._process: subprocess.Popen[bytes] | None = None
        self.checkpoint = ground.home / "checkpoints" / ground.name / "keep"
        self.table = str(ground.home / "lake" / ground.topic("kept"))
        ground.app, ground.settings = kit.application(ground.name), kit.SETTINGS
        ground.declare()

    def start(self) -> None:
        words = [self.ground.home, self.ground.kafka.bootstrap, self.ground.name]
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, DRIVER, *map(str, words)],
                stdout=out,
                stderr=out,
                stdin=subprocess.PIPE,
                start_new_session=True,
                env=os.environ | {LIFELINE_VARIABLE: "0"},
            )

    def feed(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.ground.send("readings", *(kit.message(number, NOW) for number in numbers))
        self.sent += count

    def is_between_its_logs(self) -> bool:
        """Whether Spark has begun a batch and has not written down that it is done."""
        planned, done = (
            {int(each.name) for each in (self.checkpoint / log).glob("[0-9]*")}
            for log in ("offsets", "commits")
        )
        return bool(planned - done) and max(planned, default=-1) > max(done, default=-1)

    def kill_between_its_logs(self, chance: random.Random, *, after: int) -> None:
        """Let it write some batches, and kill it and its JVM somewhere in the middle of one."""
        deadline = time.monotonic() + WAIT_SECONDS
        first = self.batches()
        while self.batches() < first + after or not self.is_between_its_logs():
            assert time.monotonic() < deadline, self.said()
            assert self._process.poll() is None, self.said()
            self.feed(5)
            time.sleep(0.02)
        time.sleep(chance.random() * 0.5)
        self.stop()

    def batches(self) -> int:
        return max(
            (int(each.name) for each in (self.checkpoint / "commits").glob("[0-9]*")), default=-1
        )

    def finish(self) -> None:
        self.feed(100)
        with self.ground.running("keep"):
            self.ground.wait("all rows", lambda: sum(ids(self.table).values()) >= self.sent)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process is not None:
            self._process.stdin.close()

    def said(self) -> str:
        return self._out.read_text(errors="replace")[-3000:]


def play(ground, *, seed: int, deaths: int) -> None:
    """Kill the driver between its logs again and again, and compare what came with what went."""
    chance = random.Random(seed)
    arena = Arena(ground)
    try:
        for _ in range(deaths):
            arena.start()
            arena.kill_between_its_logs(chance, after=chance.randrange(1, 4))
        arena.finish()
    finally:
        arena.stop()
    found, sent = ids(arena.table), Counter(range(arena.sent))
    assert (found - sent, sent - found) == (Counter(), Counter()), f"seed {seed}"


def test_a_driver_killed_between_its_logs_adds_nothing_twice_and_loses_nothing(ground):
    play(ground, seed=1, deaths=1)


@pytest.mark.skipif(not SEEDS, reason="long; make chaos plays it (PENSTOCK_CHAOS_SEEDS)")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(1500)
def test_many_deaths_add_nothing_twice_and_lose_nothing(ground, seed):
    play(ground, seed=seed, deaths=8)


def test_a_batch_that_is_repeated_adds_nothing_and_a_wrong_checkpoint_is_refused(ground):
    readings = ground.app.stream(ground.topic("readings"), kit.Reading)
    kept = ground.app.lake("kept", kit.Reading)

    @ground.app.pipeline(reads=readings, writes=kept)
    def keep(readings: DataFrame) -> DataFrame:
        return readings

    path = f"{ground.home}/lake/kept"
    checkpoint = Path(ground.home) / "checkpoints" / ground.name / "keep"
    ground.declare()
    ground.send("readings", *(kit.message(n, NOW) for n in range(5)))
    with ground.running("keep"):
        ground.wait("rows", lambda: len(ids(path)) == 5)
        ground.wait("its commit", (checkpoint / "commits" / "0").exists)
        shutil.copytree(checkpoint, checkpoint.with_name("copy"))
        ground.send("readings", *(kit.message(n, NOW) for n in range(5, 10)))
        ground.wait("rows", lambda: len(ids(path)) == 10)
    last = max(int(each.name) for each in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    with ground.running("keep"):
        ground.wait("its commit", (checkpoint / "commits" / str(last)).exists)
        ground.send("readings", kit.message(10, NOW))
        ground.wait("the next", lambda: len(ids(path)) == 11)
    assert ids(path) == Counter(range(11))

    whole = checkpoint.rename(ground.home / "aside")
    checkpoint.with_name("copy").rename(checkpoint)
    with pytest.raises(ConfigurationError) as caught:
        run_pipelines(ground.graph, ["keep"], ground.site(threading.Event()))
    assert caught.value.code == "lake.older-checkpoint"
    shutil.rmtree(checkpoint)
    with pytest.raises(ConfigurationError) as caught:
        run_pipelines(ground.graph, ["keep"], ground.site(threading.Event()))
    assert caught.value.code == "lake.second-beginning"
    assert ids(path) == Counter(range(11))
    shutil.rmtree(checkpoint)
    whole.rename(checkpoint)
    with ground.running("keep"):
        ground.send("readings", kit.message(11, NOW))
        ground.wait("the next", lambda: len(ids(path)) == 12)
    assert ids(path) == Counter(range(12))
