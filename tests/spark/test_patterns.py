"""Patterns on Spark: what services give, over a restart, and over a finished range."""

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from penstock import record
from penstock.patterns import pattern
from penstock.pipelines.execution.batch import run_batch

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@record(key="order", time="at")
class Order:
    order: str
    at: datetime
    amount: float


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


def row(order: str, minute: float, **rest: float) -> tuple[bytes, bytes]:
    at = (NOON + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    return order.encode(), json.dumps({"order": order, "at": at, **rest}).encode()


def test_orders_without_payments_are_found_over_a_restart_and_over_a_range(ground):
    orders = ground.app.stream(ground.topic("orders"), Order, partitions=1)
    payments = ground.app.stream(ground.topic("payments"), Payment, partitions=1)
    unpaid = pattern(by="order", within="10m").first("placed", orders).never("paid", payments)
    listed = unpaid.select(order="placed.order", amount="placed.amount")
    ground.app.stream(ground.topic("unpaid"), listed, on="spark")
    several = pattern(by="order").first("all", orders, times=(1, 2)).then("paid", payments)
    ground.app.stream(ground.topic("several"), several, on="spark")
    ground.declare()
    parts = ground.topic("unpaid.filling"), ground.topic("several.filling")
    with ground.running(*parts):
        ground.send("orders", row("A", 0, amount=1.0), row("B", 0, amount=2.0))
        ground.send("orders", row("C", 1, amount=3.0))
        ground.send("payments", row("A", 3), row("Z", 4))
        ground.send("orders", row("Z", 5, amount=9.0))
        ground.wait("a match", lambda: len(ground.read("several")) == 1)
    with ground.running(*parts):
        ground.send("payments", row("C", 12), row("Z", 13))
        ground.send("orders", row("Y", 14, amount=9.0), row("A", 0, amount=7.0))
        ground.send("payments", row("Y", 40))
        ground.send("orders", row("Y", 40, amount=9.0))
        # C was paid too late; so were Z and Y, whose orders are the last of their keys.
        ground.wait("unpaid orders", lambda: len(ground.read("unpaid")) == 3)
    rows = sorted(
        (each["order"], each["amount"])
        for each in (json.loads(raw.value) for raw in ground.read("unpaid"))
    )
    assert rows == [("B", 2.0), ("C", 3.0), ("Y", 9.0)]
    run_batch(ground.graph, parts[0], ground.site(threading.Event()), label="x")
    assert {("B", 2.0), ("C", 3.0), ("Y", 9.0)} <= {
        (each["order"], each["amount"])
        for each in (json.loads(raw.value) for raw in ground.read("unpaid.replay.x"))
    }
    pairs = [json.loads(raw.value) for raw in ground.read("several")]
    (pair,) = (each for each in pairs if each["order"] == "A")
    assert [one["amount"] for one in pair["all"]] == [1.0]
