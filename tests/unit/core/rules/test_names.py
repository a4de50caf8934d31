"""What `penstock check` says of the names of computed fields, and what it calls operators."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App, merge, record
from penstock.aggregates import count
from penstock.core.rules.check import check
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.testing import Driver
from penstock.windows import fixed

AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="order", time="at")
class Order:
    """An order, or a payment."""

    order: str
    at: datetime
    number: int = 0


class Declared:
    """An application with two streams and a table."""

    def __init__(self) -> None:
        self.app = App("shop")
        self.orders = self.app.stream("orders", Order, partitions=1)
        self.payments = self.app.stream("payments", Order, partitions=1)
        self.stock = self.app.table("stock", Order, partitions=1)

    def stream(self, operator: Any) -> Any:
        return self.app.stream("result", operator, on="services", partitions=1)

    def table(self, operator: Any) -> Any:
        return self.app.table("result", operator, on="services", partitions=1)


Declare = Callable[[Declared, str], Any]

NAMED: dict[str, Declare] = {
    "selection": lambda on, name: on.stream(on.orders.select(**{name: "number"})),
    "join": lambda on, name: on.stream(
        on.orders.join(on.payments, on="order", within="1s").select(**{name: "orders.number"})
    ),
    "side": lambda on, name: on.stream(
        on.orders.join(on.payments, on="order", within="1s", names=(name, "other"))
    ),
    "step": lambda on, name: on.stream(pattern(by="order", within="1s").first(name, on.orders)),
    "pattern": lambda on, name: on.stream(
        pattern(by="order", within="1s").first("a", on.orders).select(**{name: "a.number"})
    ),
    "window": lambda on, name: on.stream(
        on.orders.window(fixed("1m"), by="order").aggregate(**{name: count()})
    ),
    "window by": lambda on, name: on.stream(
        on.orders.window(fixed("1m"), by={name: "order"}).aggregate(rows=count())
    ),
    "group": lambda on, name: on.table(on.stock.group(by="number").aggregate(**{name: count()})),
    "group by": lambda on, name: on.table(
        on.stock.group(by={name: "number"}).aggregate(rows=count())
    ),
    "life cycle": lambda on, name: on.stream(
        lifecycle("a", "b").on(on.orders, "a -> b").rests("a", "b").entering("b", **{name: "order"})
    ),
}


@pytest.mark.parametrize("declare", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("name", ["x y", "", "1a", "a.b", "__x", "__init__"])
def test_no_field_has_a_name_that_no_record_can_have(declare: Declare, name: str) -> None:
    on = Declared()
    declare(on, name)
    (problem,) = check(on.app.graph)
    assert repr(name) in problem.message
    assert "is not a name for a" in problem.message
    assert problem.hint
    assert problem.place is not None
    assert problem.place.file == __file__


@pytest.mark.parametrize("declare", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("name", ["self", "class", "_x", "é"])
def test_every_other_name_can_be_used(declare: Declare, name: str) -> None:
    on = Declared()
    result = declare(on, name)
    driver = Driver(on.app)
    for stream in (on.stock, on.orders, on.payments):
        driver.pipe(stream, Order("a", AT))
    driver.advance_event_time("1h")
    found = driver.table(result) if result.kind == "table" else driver.read(result)
    assert found


UNDECLARED: dict[str, Callable[[Declared], Any]] = {
    "a step of a selection": lambda on: on.stream(
        pattern(by="order", within="1s").first("a", on.orders.where("number > 1"))
    ),
    "a step of a merge": lambda on: on.stream(
        pattern(by="order", within="1s").first("a", merge(on.orders, on.payments))
    ),
    "a life cycle of a selection": lambda on: on.stream(
        lifecycle("a", "b").on(on.orders.where("number > 1"), "a -> b").rests("a", "b")
    ),
    "a join with a merge": lambda on: on.stream(
        on.orders.join(merge(on.orders, on.payments), on="order", within="1s", names=("a", "b"))
    ),
    "a join with a join": lambda on: on.stream(
        on.orders.join(on.payments.join(on.stock, on="order"), on="order", within="1s")
    ),
    "a service of a selection": lambda on: on.app.service(
        reads=on.orders.where("number > 1"), name="reader"
    )(lambda order: None),  # noqa: ARG005 - never called
}


@pytest.mark.parametrize("declare", UNDECLARED.values(), ids=UNDECLARED)
def test_what_must_be_declared_first_is_named_briefly(declare: Callable[[Declared], Any]) -> None:
    on = Declared()
    declare(on)
    problems = [each for each in check(on.app.graph) if "is not a stream" in each.message]
    assert problems
    for problem in problems:
        assert len(problem.message) < 100
        assert "declare it first" in problem.hint
        assert "app.stream" in problem.hint


def test_a_computed_table_gets_its_key_from_what_is_selected() -> None:
    on = Declared()
    other = on.app.table("other", Order, partitions=1)
    joined = on.stock.join(other, on="order", how="outer")
    on.table(joined.select(key="stock.order"))
    (problem,) = check(on.app.graph)
    assert problem.code == "table.no-key"
    assert problem.hint == 'select the fields of the key as they are: .select(order="order", ...)'


def test_versions_are_kept_for_some_time() -> None:
    on = Declared()
    on.app.table("versions", Order, history="0s")
    (problem,) = check(on.app.graph)
    assert "in no time no version is kept" in problem.message
