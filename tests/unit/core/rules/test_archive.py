"""Archives are declared beside their streams, and each mistake with them is found."""

from datetime import datetime

import pytest

from penstock import App, real_time, record
from penstock.aggregates import count
from penstock.core.drawing.text import draw_text
from penstock.core.graph.data import Archive
from penstock.core.graph.graph import Edge
from penstock.core.graph.parts import Pipeline
from penstock.core.rules.archive import APPENDED_DAY
from penstock.core.rules.check import check
from penstock.windows import fixed


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


@record(key="device", time="at")
class Placed:
    device: str
    at: datetime
    _offset: int


def test_an_archive_is_a_lake_table_that_a_pipeline_fills():
    app = App("demo")
    readings = app.stream("readings", Reading)
    archive = app.archive(readings)
    graph = app.graph
    assert check(graph) == []
    assert isinstance(archive, Archive)
    assert (archive.name, archive.kind, archive.partition_columns) == (
        "readings.archive",
        "lake",
        (APPENDED_DAY,),
    )
    filling = graph.part("readings.archive.filling")
    assert isinstance(filling, Pipeline)
    assert (filling.reads, filling.writes) == ((readings,), archive)
    assert "archive of readings by day" in draw_text(graph)
    assert [topic.name for topic in graph.topics()] == ["readings", "demo.dead-letters"]
    assert app.archive(readings, name="kept").name == "kept"


def test_a_stream_with_its_history_is_read_in_place_of_the_stream():
    app = App("demo")
    readings = app.stream("readings", Reading)
    archive = app.archive(readings)
    copies = app.stream("copies", Reading)
    app.pipeline(reads=archive.then_live, writes=copies, name="copied")(lambda rows: rows)
    counted = archive.then_live.window(fixed("1m"), by="device").aggregate(n=count())
    app.table("counted", counted)
    assert check(app.graph) == []
    assert archive.then_live.archive == archive
    assert archive.then_live.live == readings
    assert app.archive(archive.then_live, name="again").stream == readings
    edges = list(app.graph.edges())
    assert Edge("readings", "counted.windows") in edges
    assert Edge("readings.archive", "counted.windows") in edges


def of_a_table(app):
    app.archive(app.table("latest", Reading))


def of_a_text(app):
    app.archive("readings")


def with_a_field_of_its_own(app):
    app.archive(app.stream("readings", Placed))


def written_by_another(app):
    archive = app.archive(app.stream("readings", Reading))
    app.pipeline(reads=archive.stream, writes=archive, name="mine")(lambda rows: rows)


def history_written(app):
    archive = app.archive(app.stream("readings", Reading))
    others = app.stream("others", Reading)
    app.pipeline(reads=others, writes=archive.then_live, name="mine")(lambda rows: rows)


def history_in_a_service(app):
    archive = app.archive(app.stream("readings", Reading))

    @app.service(reads=archive.then_live)
    def watch(reading: Reading) -> None: ...


def history_in_windows_of_a_service(app):
    archive = app.archive(app.stream("readings", Reading))
    counted = archive.then_live.window(fixed("1m"), by="device").aggregate(n=count())
    app.table("counted", counted, on="services")


def history_in_real_time(app):
    archive = app.archive(app.stream("readings", Reading))
    copies = app.stream("copies", Reading)
    app.pipeline(reads=archive.then_live, writes=copies, name="mine", trigger=real_time())(
        lambda rows: rows
    )


def history_by_the_clock(app):
    archive = app.archive(app.stream("readings", Reading))
    windowed = archive.then_live.window(fixed("1m"), by="device", time="processing")
    app.table("counted", windowed.aggregate(n=count()))


def another_application_s_history(app):
    archive = App("other").archive(app.stream("readings", Reading))
    copies = app.stream("copies", Reading)
    app.pipeline(reads=archive.then_live, writes=copies, name="mine")(lambda rows: rows)


MISTAKES = {
    with_a_field_of_its_own: "archive.field",
    written_by_another: "archive.written",
    history_written: "history.written",
    history_in_a_service: "history.service",
    history_in_windows_of_a_service: "history.service",
    history_in_real_time: "pipeline.real-time",
    history_by_the_clock: "history.time",
    another_application_s_history: "part.undeclared",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_each_mistake_is_found_with_its_place_and_a_way_out(mistake):
    app = App("wrong")
    mistake(app)
    problems = check(app.graph)
    assert [problem.code for problem in problems] == [MISTAKES[mistake]]
    assert all(problem.hint and problem.place.file == __file__ for problem in problems)


@pytest.mark.parametrize("mistake", [of_a_table, of_a_text], ids=lambda mistake: mistake.__name__)
def test_only_streams_are_archived(mistake):
    app = App("wrong")
    mistake(app)
    assert "archive.of" in {problem.code for problem in check(app.graph)}
