"""Operators of every kind by the host that Spark uses, against the test driver: without Spark."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
import pyarrow as pa
import pytest

from penstock import App, record
from penstock.aggregates import count
from penstock.core.graph.parts import Pipeline
from penstock.core.instants import micros
from penstock.core.panes.pages import PagedStore
from penstock.core.panes.store import MemoryStore
from penstock.core.records.eventtime import event_time_of
from penstock.core.rules.check import check
from penstock.core.wiring.operators import plan_of, written_by
from penstock.core.wiring.results import result_destination
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.pipelines.operators.hosting import Hosting
from penstock.pipelines.operators.plan import remembers
from penstock.pipelines.operators.processor import BatchMachines
from penstock.pipelines.operators.routing import BUCKET, COLUMNS, PAYLOAD, PLACES, Router, unpack
from penstock.tables import broadcast
from penstock.testing import Driver

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = micros(START_AT) + 10**12
BUCKETS = (0, 1, 2)
SIDES = ("orders", "customers")


@record(key="order", time="at")
class Order:
    order: str
    at: datetime
    customer: str


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


@record(key="customer")
class Customer:
    customer: str
    city: str


def declare(on: str) -> App:
    app = App("shop")
    orders, payments = (
        app.stream("orders", Order, partitions=1),
        app.stream("payments", Payment, partitions=1),
    )
    customers = app.table("customers", Customer, partitions=1)
    unpaid = orders.join(payments, on="order", how="left", before="0s", after="10m")
    unpaid = unpaid.where("payments is null").select(order="order", who="orders.customer")
    app.stream("unpaid", unpaid, on=on, partitions=1)
    near = orders.join(broadcast(customers), on="customer", names=SIDES)
    app.stream(
        "near", near.select(order="orders.order", city="customers.city"), on=on, partitions=1
    )
    cities = orders.join(customers, on="customer", how="left", repartition=True)
    app.stream(
        "cities", cities.select(order="orders.order", city="customers.city"), on=on, partitions=1
    )
    by_city = customers.group(by="city").aggregate(customers=count())
    app.table("by_city", by_city, on=on, partitions=1)
    alarms = pattern(by="order", within="10m").first("order", orders).never("payment", payments)
    app.stream("alarms", alarms.select(order="order.order"), on=on, partitions=1)
    life = (
        lifecycle("new", "open", "paid", "unpaid")
        .on(orders, "new -> open")
        .on(payments, "open -> paid")
        .after("10m", "open -> unpaid")
        .rests("new", "paid", "unpaid")
        .entering("unpaid", letter="concat('to ', order)")
    )
    app.stream("lives", life, on=on, partitions=1)
    assert check(app.graph) == []
    return app


def happenings() -> list[tuple[str, object]]:
    """Return what happens in the shop, in its order; the last ones only move event time."""
    towns = {"ann": "Rome", "bob": "Oslo", "carl": "Oslo", "dora": "Rome"}
    found: list[tuple[str, object]] = [
        ("customers", Customer(name, city)) for name, city in towns.items()
    ]
    found += [("customers", Customer("dora", "Oslo")), ("customers", Customer("ann", "Rome"))]
    for number in range(40):
        at = START_AT + timedelta(seconds=number)
        customer = ("ann", "bob", "carl", "dora", "nobody")[number % 5]
        found.append(("orders", Order(f"o{number}", at, customer)))
        if number % 3:
            paid_at = at + timedelta(minutes=number % 13)
            found.append(("payments", Payment(f"o{number}", paid_at)))
    after = START_AT + timedelta(hours=2)
    return [*found, ("orders", Order("last", after, "ann")), ("payments", Payment("last", after))]


class Log:
    """Topics with one partition each, of raw rows as the gate gives them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple]] = defaultdict(list)
        self.moment = 0

    def add(self, data, key: bytes | None, value: bytes | None) -> None:
        self.moment += 1
        time = event_time_of(data.record.schema)
        found = None
        if time is not None and value is not None:
            found = time(msgspec.json.decode(value, type=data.record.cls))
        self.rows[data.topic.name].append(
            (0, len(self.rows[data.topic.name]), self.moment, CLOCK, key, value, found)
        )


def batch(topics: tuple[str, ...], given: dict[str, list[tuple]]) -> pa.RecordBatch:
    rows = [(topics.index(name), *row) for name in topics for row in given.get(name, ())]
    columns = list(zip(*rows, strict=True)) or [[]] * len(COLUMNS)
    kinds = [*[pa.int64()] * 5, pa.binary(), pa.binary(), pa.int64()]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(COLUMNS))


class Hosted:
    """One part: its buckets, and how far it has read."""

    def __init__(self, graph, part: Pipeline) -> None:
        plan = plan_of(part)
        topics = tuple(dict.fromkeys(each.topic for each in plan.inputs))
        self.hosting = Hosting(plan, result_destination(graph, part), topics)
        self.writes = written_by(part)
        self.buckets = BUCKETS if remembers(plan) else (0,)
        self.stores = {each: MemoryStore() for each in self.buckets}
        self.read: dict[str, int] = defaultdict(int)

    def take(self, log: Log) -> None:
        """Take what is new as one batch, and write what it gives."""
        topics = self.hosting.topics
        given = {name: log.rows[name][self.read[name] :] for name in topics}
        self.read = defaultdict(int, {name: len(log.rows[name]) for name in topics})
        came: dict[int, list] = {each: [] for each in self.buckets}
        router = Router(self.hosting.plan, topics, self.buckets)
        for routed in router([batch(topics, given)]):
            for row in routed.to_pylist():
                came[row[BUCKET]] += unpack(row[PAYLOAD])
        for number, several in came.items():
            store = PagedStore(self.stores[number])
            hosted = self.hosting.host(store)
            for records in hosted.take(sorted(several, key=lambda each: each[:5]), clock=CLOCK):
                hosted.machine.flush()
                hosted.machine.trim(0)
                store.flush()
                for each in records:
                    assert each.topic == self.writes.topic.name
                    log.add(self.writes, each.key, each.value)


def shown(shape: str, pairs: list[tuple[bytes | None, bytes | None]]) -> list[dict]:
    """Return the results of a stream, or the rows that a table has in the end."""
    values = [value for _, value in pairs] if shape == "stream" else list(dict(pairs).values())
    found = [json.loads(value) for value in values if value is not None]
    if shape == "table":
        # Of rows without a time that of the log counts, which is another one in the driver.
        found = [{name: row[name] for name in row if name != "at"} for row in found]
    return sorted(found, key=str)


RESULTS = {
    "unpaid": "stream",
    "near": "stream",
    "cities": "stream",
    "by_city": "table",
    "alarms": "stream",
    "lives": "stream",
}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict]]:
    app = declare("services")
    driver = Driver(app)
    for name, row in happenings():
        driver.pipe(app.graph.find(name), row)
    found = {
        name: [(raw.key(), raw.value()) for raw in driver.read_raw(app.graph.find(name))]
        for name in RESULTS
    }
    assert all(found.values())
    return {name: shown(RESULTS[name], pairs) for name, pairs in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_every_kind_of_operator_gives_what_the_driver_gives_however_batches_are_cut(expected, seed):
    chance, graph, log = Random(seed), declare("spark").graph, Log()
    parts = [Hosted(graph, each) for each in graph.parts if isinstance(each, Pipeline)]
    for name, row in happenings():
        data = graph.find(name)
        key = getattr(row, data.record.schema.key[0])
        log.add(data, key.encode(), msgspec.json.encode(row))
        if chance.random() < 0.1 * seed:
            for part in parts:
                part.take(log)
    for part in parts:
        part.take(log)
    for name, shape in RESULTS.items():
        rows = log.rows[name]
        assert shown(shape, [(row[4], row[5]) for row in rows]) == expected[name], name


def test_a_range_gives_what_the_stream_gives_and_what_waited_for_its_end(expected):
    graph, log = declare("spark").graph, Log()
    for name, row in happenings():
        data = graph.find(name)
        key = getattr(row, data.record.schema.key[0])
        log.add(data, key.encode(), msgspec.json.encode(row))
    for name in ("unpaid", "alarms", "near", "lives"):
        part = Hosted(graph, graph.part(f"{name}.filling"))
        topics, plan = part.hosting.topics, part.hosting.plan.finished()
        router = Router(plan, topics, BUCKETS, singly=True)
        routed = pa.Table.from_batches(list(router([batch(topics, log.rows)])))
        ordered = routed.sort_by([(each, "ascending") for each in (BUCKET, *PLACES)])
        hosting = Hosting(plan, part.hosting.to, topics)
        out = BatchMachines(hosting)(ordered.to_batches(max_chunksize=7))
        rows = [(row["key"], row["value"]) for each in out for row in each.to_pylist()]
        found = [row for row in shown("stream", rows) if row["order"] != "last"]
        assert found == [row for row in expected[name] if row["order"] != "last"], name
