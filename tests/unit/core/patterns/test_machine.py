"""The machine of a pattern: lateness, limits, withdrawals, several streams, what it says it holds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, record
from penstock.core.instants import micros
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore
from penstock.core.patterns.plan import PatternPlan
from penstock.core.rules.check import check
from penstock.patterns import pattern, sequence
from penstock.testing import Driver

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@record(key="order", time="at")
class Order:
    order: str
    at: datetime
    amount: int


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


@pytest.fixture
def app():
    return App("shop")


@pytest.fixture
def orders(app):
    return app.stream("orders", Order)


@pytest.fixture
def payments(app):
    return app.stream("payments", Payment)


class Running:
    """A machine with what it gave."""

    def __init__(self, declared):
        self.plan = declared.plan()
        assert isinstance(self.plan, PatternPlan), self.plan
        self.store = MemoryStore()
        self.results, self.late, self.refused = [], [], []
        self.restart()

    def restart(self):
        made = self.plan.result("found", "stream")
        self.machine = self.plan.machine(self.store, made, broadcasts={})

    def pipe(self, *records, input=0):  # noqa: A002 - the word of arrivals
        came = [
            Arrival(input, each.order.encode(), each, micros(each.at), "0", number)
            for number, each in enumerate(records)
        ]
        self._keep(self.machine.take(came, clock=0))
        return self

    def tell(self, at):
        self._keep(self.machine.advance(clock=0, event_time=micros(at)))
        return self

    def _keep(self, given):
        self.results += [(each.change, each.record) for each in given.results]
        self.late += [each.arrival.record for each in given.late]
        self.refused += [(each.arrival.record, each.error.code) for each in given.refused]


def order(name, minute, amount=1):
    return Order(name, NOON + minute * MINUTE, amount)


def pairs(orders, **options):
    begun = pattern(by="order", **options).first("one", orders)
    return begun.then("two", orders, where="amount > one.amount")


def test_a_record_behind_the_watermark_is_late_and_one_at_it_is_not(orders):
    run = Running(pairs(orders)).pipe(order("A", 5), order("A", 4), order("A", 5, 2))
    assert run.late == [order("A", 4)]
    run.tell(NOON + 6 * MINUTE)
    assert [found.two for _, found in run.results] == [order("A", 5, 2)]


def test_a_late_record_within_the_lateness_withdraws_the_match_that_it_undoes(orders, payments):
    declared = pattern(by="order", within="10m", lateness="5m").first("order", orders)
    declared = declared.never("payment", payments).select(amount="order.amount").results("early")
    run = Running(declared).pipe(order("A", 0, 7))
    run.pipe(Payment("B", NOON + 12 * MINUTE), input=1).tell(NOON + 12 * MINUTE)
    assert [(change, found.order, found.withdrawn) for change, found in run.results] == [
        ("add", "A", False)
    ]
    run.machine.flush()
    run.restart()
    run.pipe(Payment("A", NOON + 8 * MINUTE), input=1)
    assert [(change, found.order, found.withdrawn) for change, found in run.results[1:]] == [
        ("withdraw", "A", True)
    ]
    run.pipe(Payment("A", NOON + 6 * MINUTE), input=1)
    assert [found.at for found in run.late] == [NOON + 6 * MINUTE]
    run.tell(NOON + 60 * MINUTE)
    run.machine.flush()
    assert not [key for key in run.store if key.startswith(b"k")]
    assert len(run.results) == 2


def test_a_record_that_would_begin_too_much_is_refused_and_changes_nothing(orders):
    run = Running(pairs(orders, most_begun=2))
    run.pipe(*(order("A", minute, 10 - minute) for minute in range(4)), order("B", 4))
    assert run.refused == [
        (order("A", 2, 8), "pattern.too-many"),
        (order("A", 3, 7), "pattern.too-many"),
    ]
    run.pipe(order("A", 6, 100)).tell(NOON + 7 * MINUTE)
    assert [found.one.amount for _, found in run.results] == [10, 9]


def test_a_sum_that_is_too_large_refuses_the_record(orders):
    declared = pattern(by="order").first("all", orders, times=(1, None))
    declared = declared.then("end", orders, where="sum(all.amount) < 0")
    most = 2**63 - 1
    run = Running(declared).pipe(order("A", 0, most), order("A", 1, 1)).tell(NOON + 9 * MINUTE)
    assert run.refused == [(order("A", 1, 1), "pattern.overflow")]


def test_what_has_ended_leaves_nothing_in_the_store(orders):
    run = Running(pairs(orders, within="10m")).pipe(order("A", 0), order("B", 5))
    run.machine.flush()
    assert sorted(key for key in run.store if key.startswith(b"k")) == [b"kA", b"kB"]
    run.restart()
    run.tell(NOON + 30 * MINUTE)
    run.machine.flush()
    assert not [key for key in run.store if key.startswith(b"k")]


def test_due_keys_are_given_in_slices(orders):
    declared = pattern(by="order", within="10m").first("one", orders).never("more", orders)
    run = Running(declared).pipe(*(order(f"{number}", 0) for number in range(5_000)))
    given = run.machine.advance(clock=0, event_time=micros(NOON + 11 * MINUTE), limit=1_000)
    assert 1_000 <= len(given.results) < 5_000
    assert run.machine.pending
    while run.machine.pending:
        given.results += run.machine.more(1_000).results
    assert len(given.results) == 5_000


def test_records_of_one_time_are_in_the_order_of_the_streams(app, orders, payments):
    declared = pattern(by="order").first("one", orders).next("payment", payments)
    found = app.stream("paid", declared, on="services")
    driver = Driver(app, partitions=1)
    driver.pipe(payments, Payment("A", NOON))
    driver.pipe(orders, order("A", 0))
    driver.advance_event_time(NOON + MINUTE)
    (paid,) = driver.read(found)
    assert (paid.one, paid.payment, paid.at) == (order("A", 0), Payment("A", NOON), NOON)


def test_begun_matches_that_run_out_of_time_are_results_where_asked(orders, payments):
    declared = pattern(by="order", within="10m").first("order", orders).then("payment", payments)
    declared = declared.with_timeouts().select(paid="payment.at")
    run = Running(declared).pipe(order("A", 0), order("B", 1))
    run.pipe(Payment("B", NOON + 3 * MINUTE), input=1).tell(NOON + 20 * MINUTE)
    shown = [(found.order, found.paid is None, found.timed_out) for _, found in run.results]
    assert shown == [("B", False, False), ("A", True, True)]


def test_it_says_what_it_holds_and_for_how_long(orders):
    declared = pairs(orders, within="10m", lateness="1m").after_match("past-last").results("early")
    assert declared.plan().holds() == (
        "records ahead of the watermark, until it has passed them",
        "begun matches with their records, for 10m; at most 1000 per key",
        "records and results for 1m after the watermark has passed them",
        "matches that an earlier begun one may discard, until it has ended",
    )


def wrong(declared):
    found = declared.plan()
    assert isinstance(found, list), found
    return {problem.code: f"{problem.message} {problem.hint}" for problem in found}


def test_everything_that_is_wrong_is_said_with_a_way_out(app, orders, payments):
    begun = pattern(by="order").first("one", orders)
    unkeyed = app.stream("unkeyed", Order, partition_by="round_robin")
    cases = {
        "pattern.endless": begun.never("payment", payments),
        "pattern.by": pattern(by="nothing").first("one", orders),
        "pattern.home": pattern(by="order").first("one", unkeyed),
        "pattern.times": begun.then("more", orders, times=(3, 1)),
        "pattern.step": begun.then("one", orders),
        "pattern.name": begun.then("at", orders),
        "pattern.option": begun.after_match("to-first", "nowhere"),
        "pattern.empty": pattern(by="order"),
        "expression.unknown-field": begun.then("more", orders, where="amuont > 3"),
        "expression.type": begun.then("more", orders, times=3).select(amount="more.amount"),
    }
    for code, declared in cases.items():
        assert code in wrong(declared), (code, wrong(declared))
    text = wrong(begun.then("more", orders, times=3).select(amount="more.amount"))
    assert "first(more.amount)" in text["expression.type"]


def test_what_never_comes_at_the_end_needs_a_time_also_beside_others_and_in_a_sequence(
    orders, payments
):
    begun = pattern(by="order").first("one", orders)
    pair = sequence().first("up", orders).never("paid", payments)
    for declared in (
        begun.never("paid", payments).not_next("order", orders),
        begun.not_next("order", orders).never("paid", payments),
        begun.then(pair, times=(1, 3)),
    ):
        assert "'paid' never coming" in wrong(declared)["pattern.endless"]
        assert not isinstance(replace(declared, within=timedelta(minutes=1)).plan(), list)


def test_a_sequence_takes_a_record(orders, payments):
    nothing = sequence().never("paid", payments).not_next("other", orders)
    found = wrong(pattern(by="order").first("one", orders).then(nothing).then("two", orders))
    assert "takes no record" in found["pattern.step"]


def test_a_sequence_takes_no_condition_of_its_own(orders):
    pair = sequence().first("up", orders).next("down", orders)
    found = wrong(pattern(by="order").first("one", orders).then(pair, where="amount > 1"))
    assert "pattern.step" in found


def test_a_pattern_of_declared_streams_passes_the_check(app, orders, payments):
    declared = pattern(by="order", within="1m").first("one", orders).never("paid", payments)
    declared = declared.select(amount="one.amount")
    app.stream("unpaid", declared, on="services")
    assert check(app.graph) == []
    assert declared.reading(declared.reads) == declared


def test_state_is_that_of_the_declaration_it_was_made_by(orders):
    one, two = pairs(orders).plan(), pairs(orders, within="1m").plan()
    assert one.declaration() != two.declaration()
    assert one.declaration() == pairs(orders, most_begun=7).plan().declaration()
