"""An aggregate that is added in one place is known to every engine: here by a test."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import prod

import pyarrow as pa
import pytest

from penstock import App, record
from penstock.core.aggregates.aggregate import Aggregate, Form, Reduction, finite, real_number
from penstock.core.rules.check import check
from penstock.core.wiring.panes import rollup_of
from penstock.pipelines.rollups.native import why_not_native
from penstock.pipelines.rollups.vectors import vector_of
from penstock.testing import Driver
from penstock.triggers import on_watermark
from penstock.windows import fixed

START = datetime(2026, 1, 1, tzinfo=UTC)


def _problems(given: "Product") -> Iterator[tuple[str, str]]:
    if given.times <= 0:
        yield f"times is {given.times!r}", "larger than nothing: product(of, times=2.0)"


@Form(
    takes="floats",
    gives=real_number,
    spark=finite("exp(sum(ln({value})))"),
    arrow={"float": Reduction(("product",), lambda found: 1.0 if found is None else found)},
    problems=_problems,
)
@dataclass(frozen=True, slots=True)
class Product:
    """The product of all values, some times over."""

    times: float = 1.0

    def zero(self):
        return 1.0

    def add(self, held, value):
        return held if value is None else held * value

    def merge(self, held, other):
        return held * other

    def result(self, held):
        return held * self.times


class Own(Product):
    """Somebody's own, made from another one: what was said of that does not hold for it."""

    __slots__ = ()

    def result(self, held):
        return round(held)


def product(of: str, times: float = 1.0) -> Aggregate:
    return Aggregate(Product(times), of)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    level: int


@pytest.fixture
def app():
    return App("demo")


@pytest.fixture
def readings(app):
    return app.stream("readings", Reading, partitions=1)


@pytest.fixture
def by_minute(readings):
    return readings.window(fixed("1m"), by="device").trigger(on_watermark())


def test_it_runs_as_a_service(app, readings, by_minute):
    panes = app.stream("panes", by_minute.aggregate(all=product("level", 2.0)), on="services")
    driver = Driver(app)
    for seconds, level in ((0, 3), (1, 5), (61, 1), (1000, 1)):
        driver.pipe(readings, Reading("d1", START + timedelta(seconds=seconds), level))
    assert [pane.all for pane in driver.read(panes)] == [30.0, 2.0]


def test_it_runs_in_spark_natively_or_on_whole_columns(app, by_minute):
    app.stream("panes", by_minute.aggregate(all=product("level")))
    pipeline = app.graph.part("panes.windows")
    assert why_not_native(pipeline) == []
    (measure,) = rollup_of(pipeline).measures
    rows = pa.table({"device": ["a", "b", "a"], "value": [3.0, 4.0, 5.0]})
    vector = vector_of(measure, "value", rows)
    reduced = rows.group_by("device").aggregate(vector.reductions)
    assert sorted(vector.accumulators(reduced)) == [4.0, prod([3.0, 5.0])]


def test_check_says_what_is_wrong_with_its_options_and_its_values(app, by_minute):
    app.stream("one", by_minute.aggregate(all=product("level", -1.0)))
    app.stream("two", by_minute.aggregate(all=product("device")))
    found = {problem.code: problem.message for problem in check(app.graph)}
    assert found["aggregate.option"] == "all: times is -1.0"
    assert "float is needed" in found["expression.type"]


def test_nothing_that_was_said_of_it_holds_for_a_class_made_from_it(app, by_minute):
    own = Aggregate(Own(), "level", gives=int)
    app.stream("panes", by_minute.aggregate(all=own))
    pipeline = app.graph.part("panes.windows")
    (reason,) = why_not_native(pipeline)
    assert reason == "all: Spark has no Own that gives the same answer"
    (measure,) = rollup_of(pipeline).measures
    assert str(measure.gives.type) == "int"
