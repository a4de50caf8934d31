"""What a function may do: joins, deletions, dedup, models, pandas; several in one Spark."""

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest
from pyspark import TaskContext, ml
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import EventTime, record
from penstock.pipelines.execution.batch import run_batch

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


def order(order_id: str, customer: str, seconds: float = 0) -> tuple[bytes, bytes]:
    at = (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    row = {"order": order_id, "customer": customer, "at": at}
    return order_id.encode(), json.dumps(row).encode()


def customer(name: str, city: str) -> tuple[bytes, bytes]:
    return name.encode(), json.dumps({"customer": name, "city": city}).encode()


def values(ground, topic: str) -> list[dict]:
    return [json.loads(each.value) for each in ground.read(topic)]


@record(key="customer")
class Total:
    customer: str
    orders: int


def test_a_key_is_deleted_from_a_table_by_a_row_that_says_so(ground):
    orders = ground.app.stream(ground.topic("orders"), Order)
    totals = ground.app.table(ground.topic("totals"), Total)

    @ground.app.pipeline(reads=orders, writes=totals)
    def count(orders: DataFrame) -> DataFrame:
        kept = F.sum(F.when(F.col("order").startswith("-"), -1).otherwise(1))
        counted = orders.groupBy("customer").agg(kept.alias("orders"))
        gone = F.col("orders") == 0
        return counted.withColumn("_deleted", gone).withColumn(
            "orders", F.when(~gone, F.col("orders"))
        )

    def table() -> dict[str, int | None]:
        return {
            each.key.decode(): each.value and json.loads(each.value)["orders"]
            for each in ground.read("totals")
        }

    ground.declare()
    ground.send("orders", order("1", "ann"), order("2", "bob"), order("3", "ann"))
    with ground.running("count"):
        ground.wait("counts", lambda: table() == {"ann": 2, "bob": 1})
        ground.send("orders", order("-2", "bob"), order("-3", "ann"))
        ground.wait("a deletion", lambda: table() == {"ann": 1, "bob": None})
    run_batch(ground.graph, "count", ground.site(threading.Event()), label="x")
    found = {each.key: each.value for each in ground.read("totals.replay.x")}
    assert found[b"bob"] is None
    assert json.loads(found[b"ann"])["orders"] == 1


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


@record(key="order")
class Settled:
    order: str
    paid_at: datetime | None = None


def payment(order_id: str, seconds: float) -> tuple[bytes, bytes]:
    at = (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return order_id.encode(), json.dumps({"order": order_id, "at": at}).encode()


WITHIN_A_MINUTE = "o.order = p.order and p.at between o.at and o.at + interval 1 minute"


def settling(ground) -> None:
    """Declare joins of orders and payments, within a minute and without end, and a dedup."""
    app, topic = ground.app, ground.topic
    orders = app.stream(topic("orders"), Order, event_time=EventTime(disorder="10s"), partitions=1)
    payments = app.stream(
        topic("payments"), Payment, event_time=EventTime(disorder="10s"), partitions=1
    )
    settled, ever = app.stream(topic("settled"), Settled), app.stream(topic("ever"), Settled)
    once = app.stream(topic("once"), Order)

    def joined(orders: DataFrame, payments: DataFrame, condition: str, how: str) -> DataFrame:
        found = orders.alias("o").join(payments.alias("p"), F.expr(condition), how)
        return found.select("o.order", F.col("p.at").alias("paid_at"))

    @app.pipeline(reads=(orders, payments), writes=settled)
    def settle(orders: DataFrame, payments: DataFrame) -> DataFrame:
        return joined(orders, payments, WITHIN_A_MINUTE, "left")

    @app.pipeline(reads=(orders, payments), writes=ever)
    def settle_ever(orders: DataFrame, payments: DataFrame) -> DataFrame:
        return joined(orders, payments, "o.order = p.order", "inner")

    @app.pipeline(reads=orders, writes=once)
    def drop_doubles(orders: DataFrame) -> DataFrame:
        return orders.dropDuplicatesWithinWatermark(["order"])

    ground.declare()


def last_report(ground, part: str):
    return next((each for each in reversed(ground.reports) if each.part == part), None)


def test_streams_are_joined_within_a_bound_that_keeps_their_state_small_and_doubles_are_dropped(
    ground,
):
    settling(ground)
    names = ("settle", "settle_ever", "drop_doubles")

    def settled(topic: str = "settled") -> list[tuple[str, str | None]]:
        return sorted((row["order"], row["paid_at"]) for row in values(ground, topic))

    def kept(part: str) -> int:
        return int(last_report(ground, part).metrics["state_rows"])

    ground.send("orders", *(order(str(each), "ann", each) for each in range(5)))
    ground.send("payments", payment("0", 20), payment("1", 50), payment("2", 300))
    with ground.running(*names):
        ground.wait("two within a minute", lambda: len(settled()) == 2)
        ground.wait("three at any time", lambda: len(settled("ever")) == 3)
        ground.wait("orders", lambda: len(values(ground, "once")) == 5)
    ground.send("orders", order("3", "ann", 3), order("4", "ann", 9))
    with ground.running(*names):
        # Far ahead, so that the watermark passes everything so far; then what is too late.
        ground.send("orders", order("9", "ann", 900))
        ground.send("payments", payment("9", 900))
        ground.wait("unpaid orders, each copy", lambda: len(settled()) == 8)
        ground.send("payments", payment("3", 4))
        ground.send("orders", order("3", "ann", 901))
        ground.wait("late at any time", lambda: len(settled("ever")) == 7)
        ground.wait("a new order 3", lambda: len(values(ground, "once")) == 7)
        ground.wait("no lag", lambda: all(last_report(ground, each).lag == 0 for each in names))
        ground.wait("state that shrinks", lambda: kept("settle") <= 4)
    at = {"0": "2026-01-01T00:00:20Z", "1": "2026-01-01T00:00:50Z", "9": "2026-01-01T00:15:00Z"}
    unpaid = [(each, None) for each in ("2", "3", "3", "4", "4")]
    assert settled() == sorted([*at.items(), *unpaid], key=lambda pair: (pair[0], str(pair[1])))
    assert [row["order"] for row in values(ground, "once")].count("4") == 1
    assert kept("settle_ever") >= 11
    assert "keeps their rows for ever" in last_report(ground, "settle_ever").detail["join"]
    assert "join" not in last_report(ground, "settle").detail


def test_pipelines_of_one_spark_share_it_fairly_each_in_a_pool_of_its_own(ground, spark):
    words = ground.app.stream(ground.topic("words"), Customer)
    for name in ("one", "two"):
        pools = ground.app.stream(ground.topic(f"pools.{name}"), Customer)

        @ground.app.pipeline(reads=words, writes=pools, name=name)
        def tell(words: DataFrame) -> DataFrame:
            def pool_of(frames):
                pool = TaskContext.get().getLocalProperty("spark.scheduler.pool")
                yield from (frame.assign(city=pool) for frame in frames)

            return words.mapInPandas(pool_of, words.schema)

    ground.declare()
    ground.send("words", customer("ann", "Rome"))
    assert spark.conf.get("spark.scheduler.mode") == "FAIR"
    with ground.running("one", "two"):
        for name in ("one", "two"):
            ground.wait("its pool", lambda name=name: bool(ground.read(f"pools.{name}")))
    assert [row["city"] for row in values(ground, "pools.one")] == ["one"]
    assert [row["city"] for row in values(ground, "pools.two")] == ["two"]


@record(key="device")
class Measured:
    device: str
    load: float
    celsius: float


@record(key="device")
class Expected:
    device: str
    celsius: float


@record(key="name")
class Model:
    name: str
    slope: float


def test_a_model_is_fitted_over_a_range_and_applied_to_the_stream(ground):
    measured = ground.app.stream(ground.topic("measured"), Measured)
    models = ground.app.table(ground.topic("models"), Model)
    expected = ground.app.stream(ground.topic("expected"), Expected)
    place = str(ground.home / "model")

    @ground.app.pipeline(reads=measured, writes=models)
    def fit(measured: DataFrame) -> DataFrame:
        features = VectorAssembler(inputCols=["load"], outputCol="features")
        model = LinearRegression(featuresCol="features", labelCol="celsius")
        fitted = ml.Pipeline(stages=[features, model]).fit(measured)
        fitted.write().overwrite().save(place)
        slope = float(fitted.stages[-1].coefficients[0])  # type: ignore[attr-defined]
        return measured.sparkSession.createDataFrame([("heat", slope)], "name string, slope double")

    @ground.app.pipeline(reads=measured, writes=expected)
    def expect(measured: DataFrame) -> DataFrame:
        scored = ml.PipelineModel.load(place).transform(measured)
        return scored.select("device", F.col("prediction").alias("celsius"))

    ground.declare()
    rows = [{"device": f"d{each}", "load": each, "celsius": 20 + 3 * each} for each in range(20)]
    ground.send(
        "measured", *((str(row["device"]).encode(), json.dumps(row).encode()) for row in rows)
    )
    run_batch(ground.graph, "fit", ground.site(threading.Event()), label="first")
    (model,) = values(ground, "models.replay.first")
    assert model["slope"] == pytest.approx(3)
    with ground.running("expect"):
        ground.wait("scores", lambda: len(values(ground, "expected")) == 20)
    found = {row["device"]: row["celsius"] for row in values(ground, "expected")}
    assert found == pytest.approx({row["device"]: row["celsius"] for row in rows})
