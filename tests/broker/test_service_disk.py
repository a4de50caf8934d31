"""State on a disk, on a real broker: resumed, rebuilt, exact."""

import logging
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest

from penstock import App, EventTime, record
from penstock.aggregates import total
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import TransientError
from penstock.services.state.shelf import LONGEST_AGE_SECONDS, open_shelf
from penstock.services.state.states import States
from penstock.services.step.factory import make_copy
from penstock.services.task.kafkalog import KafkaServiceLog
from penstock.services.task.standby import Copied, Standby
from penstock.testing.clock import ManualClock
from penstock.windows import fixed

from . import service_worker as kit

KEYS = 2000
START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    level: int


@pytest.fixture
def app(kafka, topic):
    return kit.declared(topic.name("app"), kafka)


def words(count):
    return [f"w{number % KEYS}" for number in range(count)]


def check(kafka, app):
    kit.all_counted(kafka, app)
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []


def count(kafka, app, directory, number):
    """Count so many more words with state in a directory."""
    kit.send_words(kafka, app, words(number))
    with kit.InThread(kafka, app, "count", settings=kit.on_disk(directory)) as running:
        check(kafka, app)
    assert running.error is None


def test_a_restarted_service_reads_only_what_its_disk_lacks(kafka, app, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="penstock.services")
    count(kafka, app, tmp_path, 10_000)
    count(kafka, app, tmp_path, 100)
    resumed = [line for line in caplog.messages if "restored" in line]
    lengths = [int(line.split(" of ")[0].rsplit(" ", 1)[1]) for line in resumed]
    assert len(lengths) == 4
    assert sum(lengths[2:]) < KEYS
    assert any(tmp_path.rglob("*.sst")) or any(tmp_path.rglob("*.log"))


def test_a_restore_that_was_interrupted_goes_on_where_it_was(
    kafka, app, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, logger="penstock.services")
    kit.send_words(kafka, app, [f"w{number}" for number in range(12_000)])
    with kit.InThread(kafka, app, "count"):
        check(kafka, app)
    caplog.clear()
    taken, interruptions, apply = Counter(), [], States.apply

    def interrupted(self, key, value):
        taken[self] += 1
        if taken[self] == 4_500 and not interruptions:
            interruptions.append(self)
            raise TransientError("the disk is away", code="state.disk")
        apply(self, key, value)

    monkeypatch.setattr(States, "apply", interrupted)
    count(kafka, app, tmp_path, 100)
    restored = [line.rpartition(": ")[2] for line in caplog.messages if "restored" in line]
    lengths = [tuple(map(int, line.split(" of "))) for line in restored]
    assert interruptions
    assert any(read < end - 1000 for read, end in lengths), lengths


@pytest.mark.parametrize("harm", ["lost", "broken", "older"])
def test_local_state_that_was_lost_broken_or_replaced_by_an_older_copy_is_made_right(
    kafka, app, tmp_path, harm
):
    state, older = tmp_path / "state", tmp_path / "older"
    count(kafka, app, state, 5_000)
    shutil.copytree(state, older)
    count(kafka, app, state, 5_000)
    if harm == "broken":
        for table in [*state.rglob("*.sst"), *state.rglob("*.log")]:
            data = bytearray(table.read_bytes())
            for place in range(50, len(data), 997):
                data[place] ^= 0xFF
            table.write_bytes(data)
    else:
        shutil.rmtree(state)
        if harm == "older":
            shutil.copytree(older, state)
    count(kafka, app, state, 5_000)


def test_a_worker_killed_again_and_again_with_state_on_disk_counts_exactly(kafka, app, tmp_path):
    for round_ in range(3):
        before = kit.committed_records(kafka, app.counts.topic.name)
        kit.send_words(kafka, app, words(10_000))
        with kit.InProcess(kafka, app, "count", state_dir=tmp_path) as worker:
            moment = before + 1000 * (round_ + 1)
            kit.eventually(
                lambda at=moment: kit.committed_records(kafka, app.counts.topic.name) > at,
                what=f"{moment} counts before the kill",
            )
            worker.kill()
    with kit.InProcess(kafka, app, "count", state_dir=tmp_path):
        check(kafka, app)


def test_windows_on_a_disk_go_on_after_a_restart_with_what_they_held(
    kafka, topic, tmp_path, caplog
):
    caplog.set_level(logging.INFO, logger="penstock.services")
    app = App(topic.name("app"))
    readings = app.stream(
        f"{app.name}.readings", Reading, event_time=EventTime(disorder="1h"), partitions=1
    )
    declared = readings.window(fixed("1m"), by="device").aggregate(total=total("level"))
    panes = app.stream(f"{app.name}.panes", declared, on="services")
    Topics(kafka).declare(app.graph.topics())
    (service,) = app.graph.parts

    def run(rows):
        with Producer(kafka) as producer:
            for device, second, level in rows:
                row = Reading(device, START_AT + timedelta(seconds=second), level)
                value = msgspec.json.encode(msgspec.to_builtins(row))
                producer.send(readings.topic.name, key=device.encode(), value=value)
        subject = SimpleNamespace(app=app)
        with kit.InThread(kafka, subject, service.name, settings=kit.on_disk(tmp_path)) as running:
            kit.eventually(lambda: running.has(service.name, passed=len(rows)), what="all are in")
        assert running.error is None

    run([(f"d{device}", second, 1) for device in range(KEYS) for second in (0, 30)])
    run([("d7", 45, 100)])
    run([("end", 3 * 3600, 0)])
    found = {
        pane["device"]: pane["total"]
        for raw in LogReader(kafka).read(panes.topic.name)
        if (pane := msgspec.json.decode(raw.value))["device"] != "end"
    }
    assert found == {f"d{device}": 102 if device == 7 else 2 for device in range(KEYS)}
    restored = [line.rpartition(": ")[2] for line in caplog.messages if "restored" in line]
    read = [int(line.split(" of ")[0]) for line in restored]
    assert len(read) == 3
    assert max(read[1:]) < 100 < KEYS


def test_a_standby_copy_makes_taking_over_a_matter_of_reading_what_it_lacks(
    kafka, app, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, logger="penstock.services")
    monkeypatch.setenv(kit.STANDBY, "on")
    settings = kit.on_disk(tmp_path / "heir")
    with (
        kit.InProcess(kafka, app, "count", state_dir=tmp_path / "first") as first,
        kit.InThread(kafka, app, "count", settings=settings) as heir,
    ):
        kit.eventually(
            lambda: heir.last("count") and heir.last("count").metrics["running_partitions"] == 1,
            what="each has a partition",
        )
        for _ in range(3):
            kit.send_words(kafka, app, words(10_000))
            kit.all_counted(kafka, app)
        copy = lambda: heir.last("count").metrics.get("standby_records", 0)  # noqa: E731
        kit.eventually(lambda: copy() > KEYS, what="the heir follows the share of the first")
        caplog.clear()
        first.kill()
        kit.send_words(kafka, app, words(1_000))
        check(kafka, app)
    (taken,) = [line for line in caplog.messages if "restored" in line]
    read, end = (int(word) for word in taken.rpartition(": ")[2].split(" of "))
    assert read < 100
    assert end > KEYS
    assert heir.error is None


def test_workers_of_one_host_hand_their_copies_to_each_other(
    kafka, app, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, logger="penstock.services")
    monkeypatch.setenv(kit.STANDBY, "on")
    settings = kit.on_disk(tmp_path)

    def runs(worker, partitions):
        found = worker.last("count")
        return found is not None and found.metrics["running_partitions"] == partitions

    with kit.InThread(kafka, app, "count", settings=settings) as first:
        kit.send_words(kafka, app, words(10_000))
        kit.all_counted(kafka, app)
        caplog.clear()
        for _ in range(2):
            with kit.InThread(kafka, app, "count", settings=settings) as second:
                kit.eventually(lambda: runs(first, 1), what="one gives a partition")
                kit.eventually(lambda: runs(second, 1), what="the other has it")
            kit.eventually(lambda: runs(first, 2), what="it has come back")
        check(kafka, app)
    moves = [
        line.rpartition(": ")[2].split(" of ") for line in caplog.messages if "restored" in line
    ]
    assert len(moves) == 4
    # The first to move may have been saved a moment before its last commit.
    assert all(int(read) < 100 < KEYS // 4 < int(end) for read, end in moves[1:])
    assert "another copy is made" not in caplog.text


def test_a_copy_that_was_cut_off_for_long_is_made_anew(kafka, app, tmp_path):
    """What was deleted meanwhile is not told any more: compaction has forgotten that too."""
    with TransactionalProducer(kafka, app.changelog) as producer:
        producer.begin()
        producer.send(app.changelog, key=b"total\x00here", value=b"2", partition=0)
        producer.commit()
    path = tmp_path / "0"
    shelf = open_shelf(path, identity="one")
    shelf.confirm(time.time() - 2 * LONGEST_AGE_SECONDS)
    shelf.write([(b"total\x00gone", b"1")], positions={app.changelog: 0})

    def copy(_):
        kept = make_copy(app.app.graph, app.count, clock=ManualClock(), shelf=shelf)
        return Copied(shelf, kept)

    log = KafkaServiceLog(app.app.graph, app.count, connection=kafka, settings=ServiceSettings())
    standby = Standby(log, app.changelog, open_copy=copy)
    standby.keep([0])
    kit.eventually(lambda: standby.records == 1, what="it has read the changelog")
    standby.close()
    again = open_shelf(path, identity="one")
    assert dict(again.scan(b"total\x00")) == {b"total\x00here": b"2"}
    again.close()
