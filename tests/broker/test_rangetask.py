"""One task of a replay on a real broker, without Spark: each row once, whoever begins again."""

import pyarrow as pa
import pytest

from penstock.backbone.log.reader import LogReader
from penstock.errors import ConfigurationError
from penstock.pipelines.sink.kafkatask import Output
from penstock.pipelines.sink.rangetask import COMMIT_INTERVAL, RangeTask


@pytest.fixture
def task(kafka, topic) -> RangeTask:
    name = topic(partitions=1)
    return RangeTask(Output(kafka, f"{name}.replay", name), beside=topic(partitions=1))


def rows(*values: str) -> pa.RecordBatch:
    keys = pa.array([b"k"] * len(values), pa.binary())
    return pa.record_batch([keys, pa.array([each.encode() for each in values])], ["key", "value"])


def read(task: RangeTask) -> list[str]:
    found = LogReader(task.output.connection).read(task.output.topic)
    return [each.value.decode() for each in found]


def failing(*batches: pa.RecordBatch):
    yield from batches
    raise RuntimeError("the executor was lost")


def write(task: RangeTask, batches) -> int:
    """Write with a clock by which each batch takes as long as a transaction may."""
    now = [0.0]

    def clock() -> float:
        now[0] += COMMIT_INTERVAL.total_seconds()
        return now[0]

    return task.write(0, iter(batches), clock=clock)


def test_an_attempt_that_comes_later_adds_what_is_missing_and_no_more(task):
    with pytest.raises(RuntimeError, match="executor"):
        write(task, failing(rows("1", "2"), rows("3")))
    assert write(task, [rows("1", "2", "3", "4"), rows("5")]) == 5
    assert write(task, [rows("1"), rows("2", "3", "4", "5")]) == 5
    assert read(task) == ["1", "2", "3", "4", "5"]


def test_no_transaction_is_open_while_a_task_waits_for_rows_that_come_slowly(task):
    now = [0.0]

    def slow():
        for each in ("1", "2", "3"):
            assert read(task) == [str(number) for number in range(1, int(each))]
            now[0] += COMMIT_INTERVAL.total_seconds()
            yield rows(each)

    assert task.write(0, slow(), clock=lambda: now[0]) == 3
    assert read(task) == ["1", "2", "3"]


def test_an_attempt_that_comes_later_commits_whatever_comes(task):
    with pytest.raises(RuntimeError, match="executor"):
        task.write(0, failing(rows("1"), rows("2")), again=True)
    assert read(task) == ["1", "2"]


def test_an_attempt_that_gives_other_rows_than_those_that_are_written_is_refused(task):
    with pytest.raises(RuntimeError, match="executor"):
        write(task, failing(rows("1", "2"), rows("3")))
    for others in ([rows("1", "3", "2"), rows("4")], [rows("1", "2")]):
        with pytest.raises(ConfigurationError) as refused:
            write(task, others)
        assert refused.value.code == "replay.repeated"
    assert read(task) == ["1", "2", "3"]
