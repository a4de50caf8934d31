"""Pipelines computed anew from the log beside the ones that run, killed at every step."""

import json
import random
import runpy
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError, FencedError
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.lake.table import lake_path
from penstock.pipelines.rebuild.rebuild import Watching, rebuild_pipeline

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

DRIVER = Path(__file__).with_name("rebuild_driver.py")
kit = SimpleNamespace(**runpy.run_path(str(DRIVER)))

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_SECONDS = 400
STEPS = ("computing", "computed", "switching", "fenced", "written", "switched", "tidied")


class Died(BaseException):
    """Where a rebuild was killed."""


class Feed:
    """Sends items, at once or all the time, and knows what must come of them."""

    def __init__(self, ground) -> None:
        self._ground = ground
        self._chance = random.Random(1)
        self._stop = threading.Event()
        self.sent: list[tuple[str, int]] = []

    def send(self, count: int) -> None:
        with Producer(self._ground.kafka) as producer:
            for _ in range(count):
                word, number = f"w{self._chance.randrange(9)}", len(self.sent)
                at = START_AT + timedelta(seconds=number)
                value = {"word": word, "number": number, "at": at.isoformat()}
                producer.send(
                    self._ground.topic("items"), key=word.encode(), value=json.dumps(value).encode()
                )
                self.sent.append((word, number))

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_SECONDS)

    def _work(self) -> None:
        while not self._stop.wait(0.1):
            self.send(5)

    def totals(self, version: str) -> dict[str, int]:
        found = defaultdict(int)
        for word, number in self.sent:
            if version == "old":
                found[word] += 1
            elif word != "w0":
                found[word] += number
        return dict(found)


def use(ground, version: str) -> None:
    ground.app = kit.application(ground.name, version)


def table(ground, topic: str = "totals", field: str = "total") -> dict[str, int]:
    latest = {found.key: found.value for found in ground.read(topic)}
    rows = [json.loads(value) for value in latest.values() if value is not None]
    return {row["word"]: row[field] for row in rows}


def rebuilt(ground, name: str, *, dies_at: str | None = None, **options):
    def step(reached: str) -> None:
        if reached == dies_at:
            raise Died(reached)

    site = ground.site(threading.Event())
    return rebuild_pipeline(ground.graph, name, site, watching=Watching(step=step), **options)


def killed_at(ground, step: str) -> tuple[int, str]:
    """Let a process rebuild the new version until it kills itself; return its end."""
    command = [sys.executable, DRIVER, ground.home, ground.kafka.bootstrap, ground.name, step]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    return done.returncode, done.stderr


class FencedRun(threading.Thread):
    """A run in this process that is to be ended by a rebuild; its error is kept."""

    def __init__(self, ground, name: str) -> None:
        super().__init__()
        self._graph, self._name = ground.graph, name
        self._site = ground.site(threading.Event())
        self.error: Any = None

    def run(self) -> None:
        try:
            run_pipelines(self._graph, [self._name], self._site)
        except FencedError as error:
            self.error = error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_) -> None:
        if self.error is None and sys.exc_info()[0] is not None:
            self._site.stop.set()
        self.join(WAIT_SECONDS)


def test_a_table_is_rebuilt_while_the_old_one_runs_and_records_come_in(ground):
    use(ground, "old")
    ground.declare()
    feed = Feed(ground)
    feed.send(500)
    with feed:
        with FencedRun(ground, "totals") as old:
            ground.wait("the old totals", lambda: len(table(ground)) == 9)
            # Killed when the old one was fenced and nothing was written yet: the old table stands.
            code, said = killed_at(ground, "fenced")
            assert code == -signal.SIGKILL, said
        assert old.error.code == "pipeline.rebuilt"
        assert "w0" in table(ground)
        with pytest.raises(FencedError):
            run_pipelines(ground.graph, ["totals"], ground.site(threading.Event()))
        use(ground, "new")
        declare_application(ground.graph, ground.kafka, replacing=ground.topic("totals"))
        rebuilt(ground, "totals")
        switched = table(ground)
        with ground.running("totals"):
            ground.wait("more of the new totals", lambda: table(ground) != switched)
            feed.stop()
            expected = feed.totals("new")
            ground.wait("the new totals", lambda: table(ground) == expected)
    use(ground, "old")
    with pytest.raises(ConfigurationError) as refusal:
        run_pipelines(ground.graph, ["totals"], ground.site(threading.Event()))
    assert refusal.value.code == "pipeline.changed"
    names = [each.name for each in Topics(ground.kafka).list()]
    assert not [each for each in names if ground.name in each and ".rebuild." in each]


def test_a_rebuild_that_dies_at_any_step_leaves_the_old_output_or_the_new_and_is_finished(ground):
    use(ground, "old")
    ground.declare()
    feed = Feed(ground)
    feed.send(300)
    with ground.running("totals"):
        ground.wait("the old totals", lambda: table(ground) == feed.totals("old"))
    use(ground, "new")
    for step in STEPS:
        feed.send(20)
        with pytest.raises(Died):
            rebuilt(ground, "totals", dies_at=step)
        found, before = table(ground), STEPS.index(step) < STEPS.index("written")
        assert ("w0" in found) is before, step
        if STEPS.index(step) < STEPS.index("switching"):
            use(ground, "old")
            with ground.running("totals"):
                expected = feed.totals("old")
                ground.wait("the old totals", lambda e=expected: table(ground) == e)
            use(ground, "new")
    with ground.running("totals"):
        ground.wait("the new totals", lambda: table(ground) == feed.totals("new"))


def test_windows_are_rebuilt_as_tables_are(ground):
    use(ground, "old")
    ground.declare()
    feed, name = Feed(ground), ground.topic("windows.windows")
    feed.send(200)
    with ground.running(name):
        ground.wait("panes", lambda: len(table(ground, "windows", "n")) == 9)
    use(ground, "new")
    with pytest.raises(ConfigurationError) as refusal:
        run_pipelines(ground.graph, [name], ground.site(threading.Event()))
    assert refusal.value.code == "pipeline.changed"
    assert "penstock rebuild" in refusal.value.hint
    declare_application(ground.graph, ground.kafka, replacing=ground.topic("windows"))
    rebuilt(ground, name)
    feed.send(140)
    with ground.running(name):
        ground.wait("panes", lambda: windows(ground) == expected_windows(feed))
    ground.declare()


def windows(ground) -> dict[tuple[str, str], tuple[int, int]]:
    latest = {found.key: found.value for found in ground.read("windows")}
    rows = [json.loads(value) for value in latest.values() if value is not None]
    return {(row["word"], row["window_start"]): (row["n"], row["numbers"]) for row in rows}


def expected_windows(feed: Feed) -> dict[tuple[str, str], tuple[int, int]]:
    found = defaultdict(lambda: (0, 0))
    last = len(feed.sent) // 60
    for word, number in feed.sent:
        if number // 60 < last:
            start_at = START_AT + timedelta(minutes=number // 60)
            key = (word, start_at.isoformat().replace("+00:00", "Z"))
            count, numbers = found[key]
            found[key] = (count + 1, numbers + number)
    return dict(found)


def test_a_lake_table_is_replaced_in_one_commit_and_keeps_its_history(ground, spark):
    use(ground, "old")
    ground.declare()
    feed, path = Feed(ground), lake_path(ground.topic("kept"), ground.site(threading.Event()))
    feed.send(100)

    def rows(*columns, **options):
        found = spark.read.format("delta").options(**options).load(path).select(*columns)
        return Counter(map(tuple, found.collect()))

    first = Path(path, "_delta_log", f"{0:020}.json")
    with FencedRun(ground, "kept") as old:
        ground.wait("rows", lambda: first.exists() and len(rows("word", "total")) == 100)
        before = spark.sql(f"describe history delta.`{path}`").count() - 1
        use(ground, "new")
        with pytest.raises(Died):
            rebuilt(ground, "kept", dies_at="written")
        rebuilt(ground, "kept")
    assert old.error.code == "pipeline.rebuilt"
    assert rows("word", "total", versionAsOf=before) == Counter(feed.sent)
    feed.send(50)
    with ground.running("kept"):
        expected = Counter((word, number, 2 * number) for word, number in feed.sent)
        ground.wait("rows", lambda: rows("word", "number", "twice") == expected)


def test_a_stream_is_rebuilt_only_by_adding_to_it(ground):
    use(ground, "old")
    ground.declare()
    feed = Feed(ground)
    feed.send(100)

    def echoes():
        found = [json.loads(each.value) for each in ground.read("echoes")]
        return Counter((each["word"], each["total"]) for each in found)

    old = Counter(feed.sent)
    with ground.running("echo"):
        ground.wait("echoes", lambda: echoes() == old)
    use(ground, "new")
    with pytest.raises(ConfigurationError) as refusal:
        rebuilt(ground, "echo")
    assert (refusal.value.code, "--append" in refusal.value.hint) == ("rebuild.stream", True)
    with pytest.raises(Died):
        rebuilt(ground, "echo", append=True, dies_at="written")
    rebuilt(ground, "echo", append=True)
    feed.send(50)
    with ground.running("echo"):
        new = Counter((word, 10 * number) for word, number in feed.sent)
        ground.wait("echoes", lambda: echoes() == old + new)


def test_a_log_that_lost_its_beginning_is_not_taken_for_the_whole(ground):
    use(ground, "old")
    ground.declare()
    feed = Feed(ground)
    feed.send(50)
    Topics(ground.kafka).trim(ground.topic("items"), {0: 3})
    with pytest.raises(ConfigurationError) as refusal:
        rebuilt(ground, "totals")
    assert refusal.value.code == "rebuild.trimmed"
    assert "begins at offset 3" in refusal.value.detail
    assert rebuilt(ground, "totals", trimmed=True).changed
    read = LogReader(ground.kafka).read(ground.topic("items"))
    assert table(ground) == Counter(json.loads(each.value)["word"] for each in read)
