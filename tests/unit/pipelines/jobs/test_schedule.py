"""When the next run of a job begins, and what a run may give."""

from datetime import timedelta

import pytest

from penstock import App, record
from penstock.errors import ConfigurationError, DataError, DefinitionError
from penstock.pipelines.jobs import writing
from penstock.pipelines.jobs.schedule import Schedule
from penstock.pipelines.jobs.writing import encoded

ASKS = ("asking", 0)


def schedule(**known):
    return Schedule(timedelta(minutes=10), timedelta(minutes=1), **known)


def test_a_job_that_never_ran_is_due_at_once_and_then_at_its_pace():
    fresh = schedule()
    assert fresh.next_at({}) == 0
    fresh.done(5_000, {})
    assert fresh.next_at({}) == 605_000
    assert schedule(last_at=5_000).next_at({}) == 605_000  # as after a restart


def test_whoever_asks_waits_for_the_rest_and_is_heard_once():
    found = schedule(last_at=5_000, heard={ASKS: 3})
    assert found.next_at({ASKS: 3}) == 605_000
    assert found.next_at({ASKS: 4}) == 65_000
    found.done(70_000, {ASKS: 4})
    assert not found.is_asked({ASKS: 4})


def test_failed_runs_are_repeated_after_waits_that_double_up_to_the_pace():
    found = schedule(last_at=0)
    dues = []
    at = 600_000
    for _ in range(6):
        found.failed(at)
        dues.append((found.next_at({ASKS: 9}) - at) // 60_000)
    assert dues == [1, 2, 4, 8, 10, 10]
    found.done(at, {})
    assert found.next_at({}) == at + 600_000


@record(key="device")
class Best:
    device: str
    celsius: float


@record()
class Note:
    text: str


@pytest.fixture
def job():
    app = App("plant")
    made = (app.table("best", Best), app.stream("notes", Note))

    @app.job(reads=made[0], writes=made, every="1h")
    def choose(best):
        return None

    return choose


def test_records_find_their_topic_by_their_type(job):
    found = encoded(job, [Best("a", 1.0), None, Note("x")])
    assert found == [
        ("best", b"a", b'{"device":"a","celsius":1.0}', None),
        ("notes", None, b'{"text":"x"}', "round_robin"),
    ]
    assert len(encoded(job, Note("x"))) == 1
    assert encoded(job, None) == []


def test_what_cannot_be_written_is_refused_before_anything_is(job, monkeypatch):
    with pytest.raises(DefinitionError, match="gives a int, and writes best"):
        encoded(job, [Note("x"), 3])
    with pytest.raises(DataError):
        encoded(job, Best("a", float("nan")))
    monkeypatch.setattr(writing, "MOST_RECORDS", 2)
    with pytest.raises(ConfigurationError, match="more than 2"):
        encoded(job, (Note("x") for _ in range(3)))
