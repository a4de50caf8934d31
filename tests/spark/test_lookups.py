"""Tables and lake tables beside a stream: what a batch finds in them, also when it is repeated."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import record
from penstock.pipelines.execution.batch import run_batch
from penstock.pipelines.execution.plan import checkpoint_of
from penstock.pipelines.sink.kafka import OnceSink
from penstock.pipelines.sink.kafkatask import BatchTask

pytestmark = pytest.mark.timeout(1200)

START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="order", time="at")
class Order:
    order: str
    customer: str
    at: datetime


@record(key="customer")
class Customer:
    customer: str
    city: str


@record(key="city")
class Placed:
    city: str
    order: str
    customer: str


def order(order_id: str, customer: str, seconds: float = 0) -> tuple[bytes, bytes]:
    at = (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    row = {"order": order_id, "customer": customer, "at": at}
    return order_id.encode(), json.dumps(row).encode()


def customer(name: str, city: str) -> tuple[bytes, bytes]:
    return name.encode(), json.dumps({"customer": name, "city": city}).encode()


def values(ground, topic: str) -> list[dict]:
    return [json.loads(each.value) for each in ground.read(topic)]


def cities(ground, topic: str = "placed") -> dict[str, str]:
    return {row["order"]: row["city"] for row in values(ground, topic)}


def forget_last_commit(ground, name: str) -> None:
    """Make Spark believe that it died right after its last batch was written."""
    pipeline, site = ground.graph.part(name), ground.site(threading.Event())
    commits = Path(checkpoint_of(ground.graph, pipeline, site)) / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def locating(ground, looked_up) -> None:
    """Declare the pipeline that finds the city of each order in what is looked up."""
    orders = ground.app.stream(ground.topic("orders"), Order)
    placed = ground.app.stream(ground.topic("placed"), Placed)

    @ground.app.pipeline(reads=(orders, looked_up), writes=placed)
    def locate(orders: DataFrame, customers: DataFrame) -> DataFrame:
        found = orders.join(customers, "customer", "left")
        return found.select("order", "customer", F.coalesce("city", F.lit("?")).alias("city"))


def last_report(ground, part: str):
    return next((each for each in reversed(ground.reports) if each.part == part), None)


def test_a_table_beside_a_stream_is_looked_up_as_it_is_at_each_batch(ground):
    customers = ground.app.table(ground.topic("customers"), Customer)
    locating(ground, customers)
    ground.declare()
    bad = (b"carl", b'{"customer": "carl"}')
    ground.send("customers", customer("ann", "Rome"), customer("bob", "Oslo"), (b"bob", None), bad)
    ground.send("orders", order("1", "ann"), order("2", "bob"), order("3", "carl"))
    with ground.running("locate"):
        ground.wait("the first", lambda: cities(ground) == {"1": "Rome", "2": "?", "3": "?"})
        ground.send("customers", customer("bob", "Bonn"), customer("ann", "Lima"), bad)
        ground.send("customers", customer("carl", "Graz"))
        ground.send("orders", order("4", "ann"), order("5", "bob"), order("6", "carl"))
        ground.wait("the second", lambda: len(cities(ground)) == 6)
        ground.send("customers", (b"ann", None), (b"carl", b"not json"))
        ground.send("orders", order("7", "ann"), order("8", "carl"))
        ground.wait("the third", lambda: len(cities(ground)) == 8)
        ground.wait("dead letters", lambda: len(ground.read("dead-letters")) == 3)
    assert {name: cities(ground)[name] for name in "45678"} == {
        "4": "Lima",
        "5": "Bonn",
        "6": "Graz",
        "7": "?",
        "8": "Graz",
    }
    last = ground.reports[-1].counts
    assert last.balanced
    assert (last.received, last.passed, last.dead_lettered) == (11, 8, 3)
    # Spark repeats its last batch with another table: what it wrote then has another key now.
    forget_last_commit(ground, "locate")
    ground.send("customers", customer("ann", "Kyiv"), customer("carl", "Baku"))
    with ground.running("locate"):
        ground.send("orders", order("9", "bob"))
        ground.wait("one more", lambda: len(cities(ground)) == 9)
        ground.wait("no lag", lambda: ground.reports[-1].lag == 0)
    assert len(values(ground, "placed")) == 9
    assert cities(ground)["8"] == "Graz"
    assert len(ground.read("dead-letters")) == 3

    result = run_batch(ground.graph, "locate", ground.site(threading.Event()), label="x")
    assert cities(ground, "placed.replay.x")["1"] == "Kyiv"
    assert cities(ground, "placed.replay.x")["2"] == "Bonn"
    assert result.counts.balanced
    assert (result.counts.received, result.counts.dead_lettered) == (12, 3)


def test_a_lake_table_that_changes_is_seen_by_the_next_batch_and_plain_files_are_not(ground, spark):
    known = ground.app.lake(ground.topic("known"), Customer)
    arrivals = ground.app.stream(ground.topic("arrivals"), Customer)
    locating(ground, known)

    @ground.app.pipeline(reads=arrivals, writes=known)
    def learn(arrivals: DataFrame) -> DataFrame:
        return arrivals

    files = str(ground.home / "files")
    by_file = ground.app.stream(ground.topic("by_file"), Placed)

    @ground.app.pipeline(reads=ground.graph.find(ground.topic("orders")), writes=by_file)
    def locate_by_file(orders: DataFrame) -> DataFrame:
        found = orders.join(spark.read.parquet(files), "customer", "left")
        return found.select("order", "customer", F.coalesce("city", F.lit("?")).alias("city"))

    ground.declare()
    lake = str(ground.home / "lake" / ground.topic("known"))
    schema = "customer string, city string"
    spark.createDataFrame([("bob", "Oslo")], schema).write.parquet(files)
    with ground.running("locate", "learn", "locate_by_file"):
        ground.send("orders", order("1", "ann"))
        ground.wait("the first", lambda: cities(ground) == {"1": "?"})
        ground.wait("by file", lambda: cities(ground, "by_file") == {"1": "?"})
        ground.send("arrivals", customer("ann", "Rome"))
        ground.wait("the lake", lambda: spark.read.format("delta").load(lake).count() == 1)
        spark.createDataFrame([("ann", "Rome")], schema).write.mode("append").parquet(files)
        ground.send("orders", order("2", "ann"))
        ground.wait("the second", lambda: cities(ground) == {"1": "?", "2": "Rome"})
        ground.wait("by file", lambda: cities(ground, "by_file") == {"1": "?", "2": "?"})


@record(key="kind")
class Match:
    kind: str
    order: str | None
    city: str | None = None


def matches(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Join in every way that Spark has for a stream and a table; the table by its values."""

    def of(kind: str, found: DataFrame, city: str = "city") -> DataFrame:
        return found.selectExpr(f"'{kind}' as kind", "order", f"{city} as city")

    north = customers.where("city <> 'Rome'").withColumnRenamed("customer", "who")
    several = (
        of("inner", orders.join(customers, "customer")),
        of("left", orders.join(customers, "customer", "left")),
        of("right", customers.join(orders, "customer", "right")),
        of("semi", orders.join(customers, "customer", "left_semi"), "customer"),
        of("anti", orders.join(customers, "customer", "left_anti"), "customer"),
        of("north", orders.join(F.broadcast(north), F.expr("who = customer"), "left")),
        of("more", orders.join(north, F.expr("who = customer and city > order"), "left")),
        # By another column than its key, by a value that is computed, and one table after another.
        of("city", orders.join(customers.select("city"), F.expr("city = concat('R', order)"))),
        of("two", orders.join(customers, "customer").join(north, "city")),
    )
    whole = several[0]
    for each in several[1:]:
        whole = whole.union(each)
    return whole


def matches_by_range(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Join by what needs the whole table, and by values beside it."""
    counted = customers.groupBy().count()
    far = orders.join(customers.select("city"), F.expr("city > order"), "left")
    near = orders.join(customers, "customer").join(counted).where("count > 0")
    shown = [each.selectExpr("'any' as kind", "order", "city") for each in (far, near)]
    return shown[0].union(shown[1])


def test_every_join_with_a_table_gives_what_it_gives_over_plain_frames(ground, spark):
    orders = ground.app.stream(ground.topic("orders"), Order)
    late = ground.app.stream(ground.topic("late"), Order)
    customers = ground.app.table(ground.topic("customers"), Customer)
    matched = ground.app.stream(ground.topic("matched"), Match)
    far = ground.app.stream(ground.topic("far"), Match)

    @ground.app.pipeline(reads=(orders, late, customers), writes=matched)
    def match(orders: DataFrame, late: DataFrame, customers: DataFrame) -> DataFrame:
        return matches(orders.union(late), customers)

    @ground.app.pipeline(reads=(orders, customers), writes=far)
    def match_by_range(orders: DataFrame, customers: DataFrame) -> DataFrame:
        return matches_by_range(orders, customers)

    ground.declare()
    known = {"ann": "Rome", "bob": "Oslo", "carl": "R3", "dora": "Oslo"}
    ground.send("customers", *(customer(*each) for each in known.items()))
    asked = [("1", "ann"), ("2", "bob"), ("3", "carl"), ("4", "nobody"), ("Z", "bob")]
    ground.send("orders", *(order(*each) for each in asked))
    ground.send("late", order("9", "bob"))
    table = spark.createDataFrame(list(known.items()), "customer string, city string")

    def plain(given: list[tuple[str, str]]) -> DataFrame:
        return spark.createDataFrame(given, "order string, customer string")

    def expected(found: DataFrame) -> list[tuple]:
        return sorted((row.kind, row.order, str(row.city)) for row in found.collect())

    def given(topic: str) -> list[tuple]:
        return sorted((r["kind"], r["order"], str(r["city"])) for r in values(ground, topic))

    every = expected(matches(plain([*asked, ("9", "bob")]), table))
    whole = expected(matches_by_range(plain(asked), table))
    with ground.running("match", "match_by_range"):
        ground.wait("matches", lambda: len(given("matched")) >= len(every))
        ground.wait("matches by range", lambda: len(given("far")) >= len(whole))
        ground.wait("the count", lambda: last_report(ground, "match").counts.written == len(every))
    assert given("matched") == every
    assert given("far") == whole


def test_a_batch_that_was_half_written_is_finished_with_the_rows_it_had_found(
    ground, spark, monkeypatch
):
    customers = ground.app.table(ground.topic("customers"), Customer)
    locating(ground, customers)
    names = [f"c{number}" for number in range(12)]
    ground.declare()
    ground.send("customers", *(customer(each, f"old {each}") for each in names))
    ground.send("orders", *(order(each, each) for each in names))

    class HalfTask(BatchTask):
        """A task that fails if its number is odd; as a local class it travels by value."""

        def write(self, number, batches):
            if number % 2:
                raise ValueError("the worker's machine is gone")
            return super().write(number, batches)

    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        monkeypatch.setattr(OnceSink, "task", HalfTask)
        with pytest.raises(AssertionError), ground.running("locate"):
            ground.wait("its end", lambda: ground.reports[-1].state == "failed")
        monkeypatch.undo()
        assert 0 < len(values(ground, "placed")) < len(names)
        # Every order has another key now, and would be in another task.
        ground.send("customers", *(customer(each, f"new {each}") for each in names))
        ground.reports.clear()
        with ground.running("locate"):
            ground.wait("the others", lambda: len(values(ground, "placed")) >= len(names))
            ground.send("orders", order("next", "c3"))
            ground.wait("the next", lambda: "next" in cities(ground))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert len(values(ground, "placed")) == len(names) + 1
    assert cities(ground) == {each: f"old {each}" for each in names} | {"next": "new c3"}


@record(key="city")
class Revenue:
    city: str
    orders: int


def test_a_function_with_state_reads_only_the_rows_that_its_batch_asks_for(ground, spark):
    orders = ground.app.stream(ground.topic("orders"), Order)
    customers = ground.app.table(ground.topic("customers"), Customer)
    revenue = ground.app.table(ground.topic("revenue"), Revenue)

    @ground.app.pipeline(reads=(orders, customers), writes=revenue)
    def by_city(orders: DataFrame, customers: DataFrame) -> DataFrame:
        placed = orders.join(F.broadcast(customers), "customer", "left")
        city = F.coalesce("city", F.lit("?")).alias("city")
        return placed.groupBy(city).agg(F.count("*").alias("orders"))

    def found() -> dict[str, int]:
        return {row["city"]: row["orders"] for row in values(ground, "revenue")}

    ground.declare()
    ground.send("customers", *(customer(f"c{each}", f"city {each % 7}") for each in range(500)))
    ground.send(
        "orders", *(order(str(each), f"c{each}") for each in range(14)), order("x", "nobody")
    )
    first = {f"city {each}": 2 for each in range(7)} | {"?": 1}
    with ground.running("by_city"):
        ground.wait("counts", lambda: found() == first)
        ground.wait("the count", lambda: last_report(ground, "by_city").counts.written == 8)
        part = ground.graph.part("by_city")
        checkpoint = checkpoint_of(ground.graph, part, ground.site(threading.Event()))
        (kept,) = Path(checkpoint, "lookups").glob("[0-9]")
        assert kept.stat().st_size < 20_000
        ground.send("customers", customer("c1", "Rome"), (b"c2", None))
        ground.send("orders", order("y", "c1"), order("z", "c2"))
        ground.wait("changes", lambda: found() == first | {"Rome": 1, "?": 2})
    # Spark repeats its last batch: it finds what it had found.
    forget_last_commit(ground, "by_city")
    ground.send("customers", customer("c1", "Oslo"), customer("c2", "Oslo"))
    with ground.running("by_city"):
        ground.send("orders", order("last", "c1"))
        ground.wait("one more", lambda: found().get("Oslo") == 1)
    assert found() == first | {"Rome": 1, "?": 2, "Oslo": 1}
