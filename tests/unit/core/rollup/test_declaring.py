"""Aggregations as users declare them: what `penstock check` says, and the records they give."""

from datetime import datetime

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import collect, combine, count, first, mean, quantile, top, total
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.rules.check import check
from penstock.core.wiring.panes import rollup_of
from penstock.triggers import after_count, every, on_watermark
from penstock.windows import counted, discarding, everything, fixed, retracting, sessions, sliding


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    site: str | None = None
    level: int = 0


class Longest:
    """A combiner of a user's own."""

    def zero(self):
        return 0

    def add(self, held, value):
        return max(held, len(value or ""))

    def merge(self, held, other):
        return max(held, other)

    def result(self, held):
        return held


@pytest.fixture
def app():
    return App("demo")


@pytest.fixture
def readings(app):
    return app.stream("readings", Reading, event_time=EventTime(disorder="5s"))


def codes(app):
    return [problem.code for problem in check(app.graph)]


def test_an_aggregation_fills_a_table_with_a_record_type_of_its_own(app, readings):
    by_minute = (
        readings.where("celsius > -273.15")
        .window(fixed("1m"), by="device", lateness="10m")
        .trigger(on_watermark(early=every("5s"), late=after_count(1)))
        .accumulate(retracting)
        .aggregate(fahrenheit=mean("celsius * 1.8 + 32"), readings=count(), levels=collect("level"))
    )
    table = app.table("by_minute", by_minute)
    panes = app.stream("panes", by_minute, on="services")
    assert check(app.graph) == []
    assert [str(field) for field in table.record.schema.fields] == [
        "device: text",
        "window_start: instant",
        "window_end: instant",
        "fahrenheit: float or null",
        "readings: int",
        "levels: list of int",
        "pane: one of early, on_time, late",
        "pane_index: int",
        "pane_last: bool",
    ]
    assert (table.record.schema.key, table.record.schema.time) == (("device", "window_start"), None)
    assert (panes.record.schema.key, panes.record.schema.time) == (("device",), "at")
    assert isinstance(app.graph.part("by_minute.windows"), Pipeline)
    assert isinstance(app.graph.part("panes.windows"), Service)
    assert "demo.late" in [topic.name for topic in app.graph.topics()]


def test_fields_may_be_computed_before_they_are_grouped_and_aggregated(app, readings):
    selected = readings.select(room="upper(device)", warm="celsius > 20", celsius="celsius")
    windowed = selected.where("warm").window(sessions(gap="5m"), by={"place": "room || '!'"})
    table = app.table("warm", windowed.aggregate(hottest=top("celsius", 3)))
    assert check(app.graph) == []
    assert table.record.schema.key == ("place", "window_start")
    # Sessions that become one must leave the table, so they are withdrawn.
    assert rollup_of(app.graph.part("warm.windows")).windowing.mode == "retracting"


def test_a_combiner_of_ones_own_says_what_it_gives(app, readings):
    longest = combine("site", Longest(), gives=int)
    table = app.table(
        "longest", readings.window(fixed("1h"), by="device").aggregate(length=longest)
    )
    assert check(app.graph) == []
    assert str(table.record.schema.field("length")) == "length: int"


@pytest.mark.parametrize(
    ("declare", "code"),
    [
        (lambda s: s.where("celsius >").window(fixed("1m")).aggregate(n=count()), "expression"),
        (lambda s: s.where("level").window(fixed("1m")).aggregate(n=count()), "expression"),
        (lambda s: s.window(fixed("1m"), by="devise").aggregate(n=count()), "expression"),
        (lambda s: s.window(fixed("1m"), by="site").aggregate(n=count()), "window.by"),
        (lambda s: s.window(fixed("1m"), by="celsius").aggregate(n=count()), "window.by"),
        (lambda s: s.window(fixed("a minute")).aggregate(n=count()), "window.span"),
        (lambda s: s.window(fixed("0s")).aggregate(n=count()), "window.span"),
        (lambda s: s.window(fixed("1m"), lateness="x").aggregate(n=count()), "window.span"),
        (lambda s: s.window(sliding("1m", every="2m")).aggregate(n=count()), "window.span"),
        (lambda s: s.window(counted(0)).aggregate(n=count()), "window.span"),
        (
            lambda s: s.window(fixed("1m")).trigger(after_count(0)).aggregate(n=count()),
            "window.span",
        ),
        (lambda s: s.window(everything(), by="device").aggregate(n=count()), "window.endless"),
        (lambda s: s.window(fixed("1m")).aggregate(), "aggregate.none"),
        (lambda s: s.window(fixed("1m")).aggregate(pane=count()), "aggregate.name"),
        (lambda s: s.window(fixed("1m"), by="device").aggregate(device=count()), "aggregate.name"),
        (lambda s: s.window(fixed("1m")).aggregate(n=total("device")), "aggregate.type"),
        (lambda s: s.window(fixed("1m")).aggregate(n=quantile("device", 0.5)), "expression"),
        (
            lambda s: s.window(fixed("1m")).accumulate(discarding).aggregate(n=count()),
            "table.discarding",
        ),
        (
            lambda s: s.window(everything()).trigger(every("1s")).aggregate(n=count()),
            "table.no-key",
        ),
        (
            lambda s: s.window(fixed("1m")).aggregate(n=combine("site", Longest(), gives=object)),
            "aggregate.gives",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(app, readings, declare, code):
    app.table("result", declare(readings))
    problems = check(app.graph)
    assert problems
    assert all(problem.code.startswith(code) for problem in problems), problems
    assert all(problem.place and problem.place.file == __file__ for problem in problems)


def test_a_service_refuses_groups_that_its_tasks_would_share(app, readings):
    warm = readings.window(fixed("1m"), by={"level": "level"}).aggregate(celsius=first("celsius"))
    app.table("warm", warm, on="services")
    assert codes(app) == ["window.home"]


def test_windows_in_event_time_need_one(app):
    @record(key="word")
    class Word:
        word: str

    words = app.stream("words", Word)
    app.table("counts", words.window(fixed("1m"), by="word").aggregate(n=count()))
    assert codes(app) == ["window.no-time"]
    other = App("other")
    words = other.stream("words", Word)
    windowed = words.window(fixed("1m"), by="word", time="processing")
    other.table("counts", windowed.aggregate(n=count()))
    assert codes(other) == []
