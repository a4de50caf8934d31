"""Spans that are longer than any that can be written are problems, not overflows at a commit."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import count
from penstock.core.rules.check import check
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.testing import Driver
from penstock.windows import fixed


@record(key="order", time="at")
class Order:
    """An order, or a payment."""

    order: str
    at: datetime


class Declared:
    """An application with two streams and a table."""

    def __init__(self) -> None:
        self.app = App("shop")
        self.orders = self.app.stream("orders", Order, partitions=1)
        self.payments = self.app.stream("payments", Order, partitions=1)
        self.stock = self.app.table("stock", Order, partitions=1)

    def stream(self, operator: Any) -> Any:
        return self.app.stream("result", operator, on="services", partitions=1)

    def join(self, **options: Any) -> Any:
        return self.stream(self.orders.join(self.payments, on="order", how="left", **options))

    def versions(self, span: str, wait: str) -> Any:
        table = self.app.table("versions", Order, partitions=1, history=span)
        return self.stream(self.orders.join(table, on="order", how="left", wait=wait))


SPANS: dict[str, Callable[[Declared, str], Any]] = {
    "before": lambda on, span: on.join(before=span, after="0s"),
    "after": lambda on, span: on.join(before="0s", after=span),
    "lateness": lambda on, span: on.join(within="1s", lateness=span),
    "history": lambda on, span: on.versions(span, "1s"),
    "wait": lambda on, span: on.versions("1d", span),
    "deduplicate": lambda on, span: on.stream(on.orders.deduplicate(by="order", within=span)),
    "pattern": lambda on, span: on.stream(
        pattern(by="order", within=span).first("a", on.orders).never("b", on.payments)
    ),
    "life cycle": lambda on, span: on.stream(
        lifecycle("a", "b").on(on.orders, "a -> b").after(span, "b -> a").rests("a")
    ),
    "hold": lambda on, span: on.app.table(
        "result", on.stock.group(by="order").aggregate(n=count()).hold(span), on="services"
    ),
    "window": lambda on, span: on.stream(
        on.orders.window(fixed("1m"), by="order", lateness=span).aggregate(n=count())
    ),
    "disorder": lambda on, span: on.app.stream("late", Order, event_time=EventTime(disorder=span)),
    "questions": lambda on, span: on.app.questions(
        "checks", Order, answers=Order, timeout=span, partitions=1
    ),
}


@pytest.mark.parametrize("declare", SPANS.values(), ids=SPANS)
@pytest.mark.parametrize("span", ["999999999d", "3000000d", "365001d"])
def test_a_span_has_a_longest(declare: Callable[[Declared, str], Any], span: str) -> None:
    on = Declared()
    declare(on, span)
    problems = [each for each in check(on.app.graph) if "is longer than 365000d" in each.message]
    assert problems
    assert all(each.place is not None and each.place.file == __file__ for each in problems)


@pytest.mark.parametrize("declare", SPANS.values(), ids=SPANS)
def test_a_long_span_can_be_kept(declare: Callable[[Declared, str], Any]) -> None:
    on = Declared()
    declare(on, "360000d")
    driver = Driver(on.app)
    for at in (datetime(1, 1, 1), datetime(2026, 1, 1), datetime(9999, 12, 31)):  # noqa: DTZ001
        for stream in (on.stock, on.orders, on.payments):
            driver.pipe(stream, Order("a", at.replace(tzinfo=UTC)))
    driver.crash()
    driver.restart()
    driver.pipe(on.orders, Order("a", datetime(2026, 1, 1, tzinfo=UTC)))
    assert not driver.dead_letters()
