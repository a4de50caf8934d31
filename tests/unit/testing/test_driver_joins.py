"""Joins and aggregations of tables in the driver: crashes, repartitioning, checks, explanations."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.aggregates import count, total
from penstock.core.rules.check import check
from penstock.tables import broadcast
from penstock.testing import Driver
from penstock.windows import fixed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="order", time="at")
class Order:
    order: str
    at: datetime
    amount: int
    customer: str | None = None


@record(key="payment", time="at")
class Payment:
    payment: str
    at: datetime
    order: str
    amount: int


@record(key="customer")
class Customer:
    customer: str
    city: str


def declared():
    app = App("shop")
    time = EventTime(follows="newest")
    orders = app.stream("orders", Order, event_time=time)
    payments = app.stream("payments", Payment, event_time=time)
    return app, orders, payments


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("order"), st.sampled_from("abcd"), st.integers(0, 60)),
        st.tuples(st.just("payment"), st.sampled_from("abcd"), st.integers(0, 60)),
        st.sampled_from(["commit", "crash"]),
    ),
    max_size=30,
)


def play(steps, *, crashes):
    """Return what stands in the end, and the records that were late."""
    app, orders, payments = declared()
    joined = orders.join(
        payments, on="order", how="left", before="5m", after="10m", repartition=True
    )
    results = app.stream("paid", joined, on="services")
    driver = Driver(app, partitions=3, auto_commit=not crashes)
    for number, step in enumerate(steps):
        if step == "commit":
            driver.commit()
        elif step == "crash":
            if crashes:
                driver.crash()
                driver.restart()
        else:
            what, order, minute = step
            at = NOON + timedelta(minutes=minute)
            if what == "order":
                driver.pipe(orders, Order(order, at, number))
            else:
                driver.pipe(payments, Payment(f"p{number}", at, order, number))
    if crashes:
        driver.commit()
        driver.commit()
    driver.advance_event_time(NOON + timedelta(days=1))
    if crashes:
        driver.commit()
        driver.commit()
    found = Counter()
    for each in driver.read(results):
        pair = (each.orders.amount, each.payments and each.payments.amount)
        found[pair] += -1 if each.withdrawn else 1
    return +found, min(found.values(), default=0), len(driver.late_records())


@settings(max_examples=25)
@given(STEPS)
def test_a_join_over_repartitioned_payments_is_the_same_with_and_without_crashes(steps):
    calm, crashed = play(steps, crashes=False), play(steps, crashes=True)
    assert calm[1] >= 0
    if calm[2] == crashed[2] == 0:
        # With nothing late it does not matter when the repartitioned records came.
        assert calm[0] == crashed[0]


@pytest.mark.parametrize("partitions", [None, 1, 3, 8])
@pytest.mark.parametrize("itself", [False, True])
def test_a_join_over_repartitioned_streams_is_the_same_with_any_number_of_partitions(
    partitions, itself
):
    app = App("shop")
    left = app.stream("left", Order, partitions=2)
    right = left if itself else app.stream("right", Order, partitions=2)
    joined = left.join(
        right, names=("l", "r"), on="customer", how="left", after="1m", repartition=True
    )
    pairs = app.stream("pairs", joined.select(l="l.order", r="r.order"), on="services")
    driver = Driver(app, partitions=partitions)
    for minute in range(5):
        for number in range(8):
            at = NOON + timedelta(minutes=3 * minute, seconds=number)
            order = Order(f"{minute}.{number}", at, 1, f"c{number}")
            driver.pipe(left, order)
            if not itself and number % 2:
                driver.pipe(right, order)
    driver.advance_clock("5m")  # partitions of the inputs that show nothing hold nothing back
    last = Order("last", NOON + timedelta(hours=1), 1, "c0")
    driver.pipe(left, last)
    driver.pipe(right, *([] if itself else [last]))
    driver.advance_clock("5m")
    found = {pair.l: pair.r for pair in driver.read(pairs) if pair.l != "last"}
    assert found == {
        f"{minute}.{number}": f"{minute}.{number}" if itself or number % 2 else None
        for minute in range(5)
        for number in range(8)
    }
    assert (driver.late_records(), driver.dead_letters()) == ([], [])


def test_a_customers_city_is_looked_up_by_another_field_and_by_a_broadcast_table():
    app, orders, _ = declared()
    customers = app.table("customers", Customer)
    looked = orders.join(customers, on="customer", how="left", repartition=True)
    cities = app.stream(
        "cities", looked.select(order="orders.order", city="customers.city"), on="services"
    )
    everywhere = orders.join(broadcast(customers), on="customer", how="left")
    same = app.stream(
        "same", everywhere.select(order="order", city="customers.city"), on="services"
    )
    driver = Driver(app)
    driver.pipe(customers, Customer("ann", "Bern"))
    driver.pipe(orders, Order("a", NOON, 1, "ann"), Order("b", NOON, 1, "bob"))
    driver.pipe(orders, Order("c", NOON, 1))
    for stream in (cities, same):
        assert {each.order: each.city for each in driver.read(stream)} == {
            "a": "Bern",
            "b": None,
            "c": None,
        }
    assert cities.record.schema.key == ()
    assert same.record.schema.key == ("order",)


def test_a_foreign_key_join_and_an_aggregation_follow_the_rows_over_a_crash():
    app = App("shop")
    orders, customers = app.table("orders", Order), app.table("customers", Customer)
    joined = app.table("joined", orders.join(customers, on="customer"), on="services")
    sums = orders.group(by="customer").aggregate(orders=count(), owed=total("amount"))
    owed = app.table("owed", sums, on="services")
    driver = Driver(app, partitions=3)
    driver.pipe(orders, *(Order(name, NOON, 1, "ann") for name in "abc"))
    driver.pipe(customers, Customer("ann", "Bern"), Customer("bob", "Genf"))
    driver.crash()
    driver.restart()
    driver.pipe(orders, Order("c", NOON, 5, "bob"), Order("d", NOON, 1))
    driver.pipe(customers, Customer("ann", "Basel"))
    driver.delete(orders, "a")
    cities = {key: row.customers.city for key, row in driver.table(joined).items()}
    assert cities == {"b": "Basel", "c": "Genf"}
    rows = {key: (row.orders, row.owed) for key, row in driver.table(owed).items()}
    assert rows == {"ann": (1, 1), "bob": (1, 5)}


@pytest.mark.parametrize(
    ("join", "code"),
    [
        (lambda o, p, _c: o.join(p, on="order", within="1m"), "join.partitions"),
        (lambda o, p, _c: o.join(p, on="order", repartition=True), "join.within"),
        (lambda o, p, _c: o.join(p, on="orders", within="1m"), "join.on"),
        (lambda o, p, _c: o.join(p, on={"amount": "order"}, within="1m"), "join.on"),
        (lambda o, _p, c: o.join(c, on="customer"), "join.partitions"),
        (lambda o, _p, c: o.join(broadcast(c), on="customer", within="1m"), "join.within"),
        (lambda o, _p, c: o.join(broadcast(c), on="customer", how="outer"), "join.how"),
        (lambda o, _p, c: o.join(broadcast(c), on="customer", how="cross"), "join.how"),
        (lambda o, _p, c: o.join(broadcast(c), on="order"), "join.on"),
        (lambda o, _p, c: o.join(broadcast(c), on="customer", wait="1s"), "join.wait"),
        (lambda o, p, _c: o.join(broadcast(p), on="order"), "join.broadcast"),
        (lambda o, _p, _c: o.join(o, on="order", within="1m"), "join.names"),
        (lambda o, p, _c: o.join(p, on="order", within="1m", names=("order", "p")), "join.names"),
        (lambda o, p, _c: o.join(p, on="order", within="soon"), "join.span"),
        (
            lambda o, p, _c: o.join(p, on="order", before="1m", after="-2m", repartition=True),
            "join.within",
        ),
        (
            lambda o, _p, c: o.join(broadcast(c), on="customer").select(at="orders.at"),
            "select.name",
        ),
        (
            lambda o, _p, c: o.join(broadcast(c), on="customer").select(x="orders.city"),
            "expression.unknown-field",
        ),
    ],
)
def test_what_is_wrong_with_a_join_is_said_at_check(join, code):
    app, orders, payments = declared()
    customers = app.table("customers", Customer)
    app.stream("results", join(orders, payments, customers), on="services")
    found = [problem for problem in check(app.graph) if problem.code == code]
    assert found
    assert all(problem.hint and problem.place for problem in found)


def test_the_plan_says_what_state_it_holds_and_for_how_long():
    app, orders, payments = declared()
    app.stream(
        "paid",
        orders.join(
            payments, on="order", before="0s", after="10m", lateness="1m", repartition=True
        ),
        on="services",
    )
    plan = app.graph.part("paid.filling").plan
    assert plan.holds() == (
        "the records of orders, until event time is 11m past them",
        "the records of payments, until event time is 11m past them",
    )
    assert plan.declaration()["within"] == "0s before, 10m after"
    assert plan.declaration()["selection"] == ""


@pytest.mark.parametrize("emits", ["early", "final"])
def test_a_table_of_unpaid_orders_loses_those_that_are_paid_after_all(emits):
    app, orders, payments = declared()
    join = orders.join(
        payments, on="order", how="left", before="30m", after="0s", repartition=True
    ).results(emits)
    unpaid = join.where("payments is null").select(order="order", amount="orders.amount")
    table = app.table("unpaid", unpaid, on="services")
    driver = Driver(app)
    driver.pipe(orders, Order("a", NOON, 1), Order("b", NOON, 1))
    driver.advance_event_time(NOON + timedelta(minutes=1))
    assert set(driver.table(table)) == {"a", "b"}
    driver.pipe(payments, Payment("p", NOON - timedelta(minutes=5), "a", 1))
    driver.advance_event_time(NOON + timedelta(days=1))
    assert set(driver.table(table)) == {"b"}


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@pytest.mark.parametrize("spans", [{"within": "60s"}, {"after": "60s"}, {"before": "60s"}])
@pytest.mark.parametrize("ahead", [0, 1])
def test_a_window_counts_all_results_of_a_join_of_which_one_side_is_ahead(how, spans, ahead):
    app = App("shop")
    sides = app.stream("left", Order, partitions=1), app.stream("right", Order, partitions=1)
    joined = app.stream(
        "joined",
        sides[0].join(sides[1], on="order", how=how, **spans).select(order="order"),
        on="services",
        partitions=1,
    )
    counts = joined.window(fixed("10s"), by="order").aggregate(results=count())
    counted = app.stream("counted", counts, on="services")
    driver = Driver(app)
    for side in (ahead, 1 - ahead):
        for number in range(60):
            at = NOON + timedelta(seconds=4 * number)
            # The keys differ, so that some rows have no partner.
            name = "abcdefghij"[number * (side + 2) % 10]
            driver.pipe(sides[side], Order(name, at, number))
    driver.advance_event_time(NOON + timedelta(days=1))
    results = driver.read(joined)
    assert len(results) > 30
    assert sum(each.results for each in driver.read(counted)) == len(results)
    assert not driver.late_records()


def test_who_writes_the_record_for_the_stream_is_told_the_field_of_the_stream():
    _, orders, payments = declared()
    join = orders.join(payments, on="order", within="1m", repartition=True)
    (problem,) = join.select(paid="order.amount").plan()
    assert problem.hint == "did you mean 'orders.amount'?"


def test_results_of_a_look_up_that_waits_allow_for_those_that_do_not():
    app, orders, _ = declared()
    customers = app.table("customers", Customer, history="1d")

    def disorder(how, on):
        join = orders.join(customers, on=on, how=how, wait="1m", repartition=True)
        name = f"{how}-{'-'.join(on.values())}-{'-'.join(on)}"
        return app.stream(name, join, on="services").event_time.disorder

    assert disorder("left", {"customer": "customer"}) == timedelta(minutes=1)
    assert disorder("left", {"order": "customer"}) is None
    assert disorder("inner", {"customer": "customer"}) is None


def test_a_row_of_results_was_deleted_at_the_event_time_of_the_change_that_deleted_it():
    app, orders, _ = declared()
    rows = app.table("rows", Order)
    owed = app.table("owed", rows.where("amount > 0"), on="services")
    of_customers = owed.group(by="customer").aggregate(orders=count())
    counts = app.table("counts", of_customers, on="services", history="30d")
    beside = orders.join(counts, on="customer", how="left", repartition=True)
    seen = app.stream(
        "seen", beside.select(order="orders.order", orders="counts.orders"), on="services"
    )
    driver = Driver(app)

    def at(minutes: int) -> datetime:  # long before the clock of the driver
        return NOON - timedelta(days=20) + timedelta(minutes=minutes)

    driver.pipe(rows, Order("1", at(0), 5, "ann"))
    driver.pipe(rows, Order("1", at(10), 0, "ann"))  # left out: ann has none
    driver.pipe(rows, Order("2", at(20), 5, "ann"))
    driver.pipe(orders, *(Order(f"at {each}", at(each), 1, "ann") for each in (5, 15, 25)))
    found = {each.order: each.orders for each in driver.read(seen)}
    assert found == {"at 5": 1, "at 15": None, "at 25": 1}
