"""A service that is told of changes of a table's rows: deletions too, and what was before."""

from datetime import UTC, datetime

import pytest

from penstock import App, Context, State, record
from penstock.core.drawing.text import describe
from penstock.core.rules.check import check
from penstock.tables import Change
from penstock.testing import Driver

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="kind", time="since")
class Price:
    kind: str
    since: datetime
    cents: int


@record(key="kind")
class Order:
    kind: str
    pieces: int


@record(key="kind")
class Told:
    kind: str
    text: str


@pytest.fixture
def app():
    return App("shop")


@pytest.fixture
def prices(app):
    return app.table("prices", Price)


@pytest.fixture
def told(app):
    return app.stream("told", Told)


def price(cents, kind="pear"):
    return Price(kind, T0, cents)


def cents(row):
    return None if row is None else row.cents


def texts(driver, told):
    return [each.text for each in driver.read(told)]


def shown(change):
    return f"{cents(change.before)} to {cents(change.now)}"


@pytest.mark.parametrize("crash", [False, True])
def test_a_service_hears_what_a_row_was_and_that_it_is_gone(app, prices, told, crash):
    @app.service(reads=prices, writes=told)
    def tell(change: Change[Price]) -> Told:
        return Told(change.key, shown(change))

    driver = Driver(app)
    driver.pipe(prices, price(100), price(120))
    if crash:
        driver.crash()
        driver.restart()
    driver.delete(prices, "pear")
    driver.delete(prices, "pear")
    driver.delete(prices, "plum")
    driver.pipe(prices, price(90))
    assert texts(driver, told) == ["None to 100", "100 to 120", "120 to None", "None to 90"]
    counts = driver.counts(tell)
    assert (counts.passed, counts.filtered) == (4, 2)


def test_what_was_before_is_what_was_handled(app, prices, told):
    @app.service(reads=prices, writes=told)
    def tell(change: Change[Price], total: State[int]) -> Told:
        total.set(total.get(0) + (cents(change.now) or 0) - (cents(change.before) or 0))
        if change.now and change.now.cents == 666:
            raise ValueError("no")
        return Told(change.key, f"{shown(change)}, {total.get()}")

    driver = Driver(app)
    driver.pipe(prices, price(100), price(666), price(120))
    driver.pipe_raw(prices, b"pear", b"{}")
    driver.pipe(prices, price(130))
    assert texts(driver, told) == ["None to 100, 100", "100 to 120, 120", "120 to 130, 130"]
    assert len(driver.dead_letters()) == 2


def test_an_async_service_and_one_that_reads_a_stream_beside_hear_changes(app, prices, told):
    orders = app.stream("orders", Order)

    @app.service(reads=(orders, prices), writes=told)
    async def tell(
        given: Order | Change[Price], price: State[int], context: Context
    ) -> Told | None:
        if isinstance(given, Order):
            return Told(given.kind, str(given.pieces * price.get(0)))
        price.set(cents(given.now) or 0)
        return Told(given.key, f"{shown(given)} in {context.coordinates.topic}")

    driver = Driver(app)
    driver.pipe(prices, price(100))
    driver.pipe(orders, Order("pear", 3))
    driver.delete(prices, "pear")
    driver.pipe(orders, Order("pear", 3))
    assert texts(driver, told) == ["None to 100 in prices", "300", "100 to None in prices", "0"]


def test_changes_are_those_of_a_table(app, prices, told):
    orders = app.stream("orders", Order)

    @app.service(reads=orders, writes=told)
    def tell(change: Change[Order]) -> Told:
        return Told(change.key, "")

    (problem,) = check(app.graph)
    assert problem.code == "service.changes"
    assert "reads no table" in problem.message


def test_a_table_that_keeps_versions_needs_to_say_since_when_a_row_holds(app):
    kept = app.table("kept", Price, history="1d")
    app.table("told_off", Told, history="1d")
    app.table("no_time", Price, history="0s")
    assert describe(kept) == "table of Price by kind, versions of 1d"
    problems = check(app.graph)
    assert [problem.code for problem in problems] == ["table.history", "table.history"]
    assert "@record(key=..., time=" in problems[0].hint
