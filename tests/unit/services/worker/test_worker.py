"""A whole worker and its reporter, in a thread of its own, on a log in memory."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock import App, State, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.settings.settings import KafkaSettings, ServiceSettings, Settings
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.places import Places
from penstock.services.worker.reporter import Reporter
from penstock.services.worker.worker import Worker
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30.0


@record(key="word")
class Word:
    word: str


app = App("demo")
words = app.stream("words", Word, partitions=2)


@app.service(reads=words)
def count(word: Word, total: State[int]) -> None:
    if word.word == "poison":
        raise ValueError("poison")
    total.set(total.get(0) + 1)


class Log(MemoryServiceLog):
    """A log in memory that refuses a number of joins, and tells of the deliveries it makes."""

    def __init__(self, *errors):
        topics = app.graph.topics()
        super().__init__(app.graph, count, MemoryLog(topics, clock=lambda: NOW_AT))
        self._errors = list(errors)
        self.joined = 0

    def join(self, listener, *, poll_interval):
        self.joined += 1
        if self._errors:
            raise self._errors.pop(0)
        return super().join(listener, poll_interval=poll_interval)


class Running:
    """A worker in a thread; every report is looked at as it comes."""

    def __init__(self, log):
        self.below = log
        self.error = None
        self.reports = []
        self._news = threading.Condition()
        self.site = Site(
            settings=Settings(services=ServiceSettings(commit_interval=timedelta())),
            places=Places(Path("/nowhere")),
            connection=Connection("nowhere:1", KafkaSettings()),
            stop=threading.Event(),
            report=self._reported,
        )
        self.worker = Worker(app.graph, count, self.site, log=log)
        self._thread = threading.Thread(target=self._run)

    def write(self, *texts):
        for text in texts:
            self.below.log.append(
                "words", key=text.encode(), value=b'{"word":"%s"}' % text.encode()
            )

    def wait_for(self, condition):
        """Wait for a report of which this is true, and return it."""
        with self._news:
            came = self._news.wait_for(
                lambda: any(map(condition, self.reports)) or self.error, PATIENCE
            )
            assert came, [report.state for report in self.reports]
            return next(filter(condition, self.reports), None)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.site.stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self):
        try:
            with Reporter(self.worker.work, self.worker.log, count, self.site):
                self.worker.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            with self._news:
                self.error = error
                self._news.notify_all()

    def _reported(self, report):
        with self._news:
            self.reports.append(report)
            self._news.notify_all()


def test_it_handles_what_there_is_reports_it_and_commits_before_it_leaves():
    log = Log()
    with Running(log) as running:
        running.write("a", "b", "a", "poison")
        found = running.wait_for(lambda report: report.counts.received == 4 and report.lag == 0)
        assert found.state == "running"
        assert (found.counts.passed, found.counts.dead_lettered) == (3, 1)
        assert found.detail["partitions"] == "words[0], words[1]"
        assert "poison" in found.detail["last dead letter"]
        running.write("c")
    last = running.reports[-1]
    assert last.state == "stopped"
    assert sum(log.log.committed("demo.count").values()) >= last.counts.received
    assert running.error is None


def test_trouble_at_joining_is_told_and_passes():
    log = Log(TransientError("Kafka is away", code="test"))
    with Running(log) as running:
        running.write("a")
        found = running.wait_for(lambda report: report.counts.passed == 1)
        assert log.joined == 2
        assert found.metrics["restarts_total"] == 1
        running.wait_for(lambda report: report.state == "running")


def test_what_will_not_pass_ends_it_and_is_its_last_report():
    log = Log(ConfigurationError("there is no topic", code="topic.missing"))
    with Running(log) as running:
        running.wait_for(lambda report: report.state == "failed")
    assert isinstance(running.error, ConfigurationError)
    assert (running.reports[-1].state, running.reports[-1].reason) == (
        "failed",
        "there is no topic",
    )


@pytest.mark.parametrize("how", ["revoke", "lose"])
def test_partitions_that_go_and_come_back_are_counted_once(how):
    log = Log()
    with Running(log) as running:
        running.wait_for(lambda report: "words[1]" in report.detail["partitions"])
        running.write(*(f"{number}" for number in range(50)))
        getattr(log.member, how)([("words", 0)])
        log.member.give([("words", 0)])
        running.wait_for(lambda report: report.counts.passed == 50 and report.lag == 0)
    assert sum(log.log.committed("demo.count").values()) == 50
    changes = [raw for number in (0, 1) for raw in log.log.read(("demo.count.changelog", number))]
    latest = {raw.key(): raw.value() for raw in changes if raw.key().startswith(b"total")}
    assert set(latest.values()) == {b"1"}
    assert len(latest) == 50
