"""What `penstock check` says of jobs."""

import pytest

from penstock import App, record
from penstock.core.drawing.text import draw_text
from penstock.core.graph.job import Job
from penstock.core.rules.check import check


@record(key="device")
class Reading:
    device: str
    celsius: float


@record(key="device")
class Best:
    device: str
    celsius: float


@pytest.fixture
def app():
    return App("plant")


def problems(app):
    return [(each.code, each.message) for each in check(app.graph)]


def test_a_job_may_read_and_write_the_same_table_since_it_runs_by_the_clock(app):
    readings, best = app.stream("readings", Reading), app.table("best", Best)
    archive, asking = app.archive(readings), app.stream("asking", Reading)

    @app.job(reads=(archive.then_live, best), writes=best, every="10m", asked_by=asking)
    def choose(readings, best, *, run):
        return None

    assert isinstance(choose, Job)
    assert choose.takes_run
    assert choose.summary == "job, every 10m or asked by asking, exactly once"
    assert [each.name for each in choose.inputs] == [
        "readings",
        "best",
        "readings.archive",
        "asking",
    ]
    assert check(app.graph) == []
    assert "best ↺ feedback" in draw_text(app.graph)
    assert choose(1, 2, run=3) is None


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"every": "0s"}, "data.option", "every is zero"),
        ({"rest": "1ms"}, "data.option", "rest is shorter"),
        ({"every": "soon"}, "data.option", "soon"),
        ({"writes": ()}, "job.writes", "writes nothing"),
        ({"writes": "lake"}, "job.writes", "writes lake table"),
        ({"writes": "both"}, "job.writes", "more than one"),
        ({"asked_by": "best"}, "job.asked-by", "which is a table"),
        ({"asked_by": "made"}, "job.asked-by", "which it writes itself"),
        ({"reads": "both"}, "job.parameters", "takes 1 DataFrames, but reads 2"),
    ],
)
def test_what_a_job_cannot_do_is_said_with_its_line(app, options, code, words):
    readings, best, made = (
        app.stream("readings", Reading),
        app.table("best", Best),
        app.stream("made", Best),
    )
    named = {"best": best, "made": made, "both": (best, made), "lake": app.lake("kept", Reading)}
    given = {"reads": readings, "writes": made, "every": "1h"} | options
    given = {key: named.get(value, value) for key, value in given.items()}

    @app.job(**given)
    def choose(readings):
        return None

    found = problems(app)
    assert [each for each, _ in found] == [code]
    assert words in found[0][1]


def test_a_parameter_that_nobody_gives_is_a_problem(app):
    readings, made = app.stream("readings", Reading), app.stream("made", Best)

    @app.job(reads=readings, writes=made, every="1h")
    def choose(readings, *, model):
        return None

    assert [code for code, _ in problems(app)] == ["job.parameters"]
