"""One task of a batch on a real broker, without Spark: its rows are written once, whoever runs it."""

import signal
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError, DataError, FencedError
from penstock.pipelines.sink import kafkatask as oncetask
from penstock.pipelines.sink.kafka import _begin_run
from penstock.pipelines.sink.kafkatask import BatchTask, KeptProducers, Output, run_name, task_name

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(autouse=True)
def kept(monkeypatch) -> KeptProducers:
    """A worker of its own for each test."""
    oncetask._reader.cache_clear()
    producers = KeptProducers()
    monkeypatch.setattr(oncetask, "_PRODUCERS", producers)
    return producers


@pytest.fixture
def output(kafka, topic) -> Output:
    name = topic(partitions=1)
    return Output(kafka, f"{name}.query", name)


def rows(*pairs: tuple[str, str | None]) -> list[pa.RecordBatch]:
    keys = [key.encode() for key, _ in pairs]
    values = [None if value is None else value.encode() for _, value in pairs]
    arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return [pa.record_batch(arrays, names=["key", "value"])]


def write(output: Output, batch: int, *pairs: tuple[str, str], run: int = 1, number: int = 0):
    BatchTask(output, batch, run).write(number, iter(rows(*pairs) if pairs else []))


def read(output: Output) -> list[str]:
    """Read when every transaction on the topic has ended."""
    topics = Topics(output.connection)
    while topics.ends(output.topic, committed=True) != topics.ends(output.topic):
        pass
    found = LogReader(output.connection).read(output.topic)
    return [record.value.decode() for record in found if record.value]


def test_a_batch_that_is_written_again_adds_nothing(output, kept):
    write(output, 0, ("a", "0a"), ("a", "0b"))
    write(output, 1, ("a", "1a"))
    for _ in range(2):
        write(output, 1, ("a", "again"))
    write(output, 2, ("a", "2a"))
    assert read(output) == ["0a", "0b", "1a", "2a"]


def test_batches_behind_what_was_written_are_refused_and_not_taken_for_written(output, kept):
    for batch in range(7):
        write(output, batch, ("a", f"old {batch}"))
    for batch in (3, 4, 5):
        with pytest.raises(ConfigurationError) as refusal:
            write(output, batch, ("a", f"new {batch}"), run=2)
        assert refusal.value.code == "pipeline.older-checkpoint"
        assert "batch 6 was begun" in refusal.value.detail
    assert read(output) == [f"old {batch}" for batch in range(7)]


def test_tasks_of_one_batch_have_positions_of_their_own(output):
    write(output, 0, ("a", "first"), number=0)
    write(output, 0, ("b", "second"), number=1)
    write(output, 0, ("a", "again"), number=0)
    assert sorted(read(output)) == ["first", "second"]


def test_another_checkpoint_counts_its_batches_from_the_beginning(output):
    write(output, 0, ("a", "old"))
    write(replace(output, name=f"{output.name}.anew"), 0, ("a", "new"))
    assert read(output) == ["old", "new"]


def test_producers_are_kept_for_the_next_batch_and_no_other(output, kept):
    name = task_name(output.name, 0)
    write(output, 0, ("a", "0"))
    first = kept._kept[name].producer
    write(output, 1)
    write(output, 2, ("a", "2"))
    assert kept._kept[name].producer is first
    write(output, 4, ("a", "4"))
    assert kept._kept[name].producer is not first
    assert first.dead
    write(output, 5, ("a", "5"), run=2)
    assert read(output) == ["0", "2", "4", "5"]


def test_producers_that_nobody_asks_for_are_closed_and_there_are_few(output):
    now = [0.0]
    kept = KeptProducers(clock=lambda: now[0], limit=4)
    made = {}
    for number in range(6):
        name = f"{output.name}.{number}"
        made[number] = TransactionalProducer(output.connection, name)
        now[0] += 1
        kept.give_back(name, made[number], run=1, batch=0)
    assert kept.take("unknown", run=1, batch=1) is None
    assert [number for number, producer in made.items() if producer.dead] == [0, 1]
    now[0] += 61
    assert kept.take(f"{output.name}.5", run=1, batch=1) is None
    assert all(producer.dead for producer in made.values())


def test_a_task_that_fails_half_way_writes_nothing_and_its_producer_is_thrown_away(output, kept):
    write(output, 0, ("a", "0"))
    large = "x" * (output.connection.settings.max_message_bytes + 1)
    with pytest.raises(DataError):
        write(output, 1, ("a", "half"), ("a", large))
    assert kept._kept == {}
    write(output, 1, ("a", "whole"))
    assert read(output) == ["0", "whole"]


def test_an_attempt_that_was_overtaken_is_fenced_and_changes_nothing(output):
    slow = BatchTask(output, 0, 1)

    def overtaken(batches):
        yield from rows(("a", "slow"))
        write(output, 0, ("a", "quick"))

    with pytest.raises(FencedError):
        slow.write(0, overtaken(None))
    assert read(output) == ["quick"]


KILLED = """
import os, signal, sys
import pyarrow as pa
from penstock.backbone.client.connection import Connection
from penstock.core.settings.settings import KafkaSettings
from penstock.pipelines.sink.kafkatask import BatchTask, Output

bootstrap, name, topic = sys.argv[1:]

def rows():
    pairs = [pa.array([b"a"], pa.binary()), pa.array([b"lost"], pa.binary())]
    yield pa.record_batch(pairs, names=["key", "value"])
    os.kill(os.getpid(), signal.SIGKILL)

BatchTask(Output(Connection(bootstrap, KafkaSettings()), name, topic), 0, 1).write(0, rows())
"""


def test_a_worker_killed_with_its_transaction_open_holds_nobody_up(output):
    words = [output.connection.bootstrap, output.name, output.topic]
    killed = subprocess.run([sys.executable, "-c", KILLED, *words], timeout=200, check=False)
    assert killed.returncode == -signal.SIGKILL
    write(output, 0, ("a", "kept"))
    assert read(output) == ["kept"]


def test_tasks_of_an_earlier_run_are_refused_and_disturb_nobody(output, kept):
    old, new = _begin_run(output), _begin_run(output)
    assert new > old
    assert _begin_run(output, after=old) == 0
    write(output, 0, ("a", "new"), run=new)
    current = kept._kept.pop(task_name(output.name, 0)).producer
    with pytest.raises(FencedError) as caught:
        write(output, 1, ("a", "old"), run=old)
    assert caught.value.code == "pipeline.taken-over"
    current.begin()
    current.send(output.topic, key=b"a", value=b"still mine")
    current.commit()
    current.close()
    assert read(output) == ["new", "still mine"]


def test_a_run_whose_number_was_forgotten_does_not_get_it_again(output):
    old = _begin_run(output)
    PositionStore(output.connection).forget(run_name(output.name))
    new = _begin_run(output)
    assert new > old
    with pytest.raises(FencedError):
        write(output, 0, ("a", "old"), run=old)
    write(output, 0, ("a", "new"), run=new)
    assert read(output) == ["new"]


def test_a_worker_with_more_tasks_than_a_few_keeps_the_producers_of_all(output, kept):
    for number in range(8):
        write(output, 0, ("a", "0"), number=number)
    before = {name: each.producer for name, each in kept._kept.items()}
    for number in range(8):
        write(output, 1, ("a", "1"), number=number)
    assert {name: each.producer for name, each in kept._kept.items()} == before
    assert len(before) == 8


def test_rows_say_their_topic_headers_and_deletions_and_keep_their_order(output, topic):
    other = topic(partitions=1)
    marks = [("penstock.pane", b"late"), ("empty", None)]
    given = [
        (output.topic, b"k", b"withdrawn", marks),
        (output.topic, b"k", b"again", None),
        (other, b"late", None, []),
        (output.topic, b"k", None, [("only", b"one")]),
    ]
    columns = [
        pa.array([row[0] for row in given]),
        pa.array([row[1] for row in given], pa.binary()),
        pa.array([row[2] for row in given], pa.binary()),
        pa.array(
            [row[3] and [{"key": key, "value": value} for key, value in row[3]] for row in given],
            HEADERS,
        ),
    ]
    batch = pa.record_batch(columns, names=["topic", "key", "value", "headers"])
    BatchTask(output, 0, 1).write(0, iter([batch.slice(0, 1), batch.slice(1)]))
    found = list(LogReader(output.connection).read(output.topic))
    assert [each.value for each in found] == [b"withdrawn", b"again", None]
    assert [list(each.headers) for each in found] == [marks, [], [("only", b"one")]]
    (late,) = LogReader(output.connection).read(other)
    assert (late.key, late.value) == (b"late", None)


def test_the_position_says_which_batch_was_written_last(output):
    write(output, 7, ("a", "7"))
    name = task_name(output.name, 0)
    assert PositionStore(output.connection).read(name) == {output.at: 8}
    assert position_group(name).startswith("penstock.position.")
