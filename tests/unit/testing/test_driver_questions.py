"""Parts that ask each other: one answer or one silence for each question, whatever crashes."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Context, Output, State, Timer, Timers, record
from penstock.questions import ReplyTo, Unanswered, answer, ask
from penstock.testing import Driver


@record(key="order")
class Placed:
    order: str
    customer: str
    amount: float


@record(key="customer")
class Check:
    customer: str
    amount: float


@record()
class Verdict:
    good: bool


@record(key="order")
class Told:
    order: str
    text: str


class Order:
    asked: int = 0

    def receive(self, placed: Placed) -> Iterator[Output[Check] | Told]:
        if placed.amount < 0:
            yield ask(Shop.now.checks, Check(placed.customer, placed.amount))
            raise ValueError("nobody sells that")
        for number in range(int(placed.amount) % 3 + 1):
            self.asked += 1
            yield ask(Shop.now.checks, Check(placed.customer, placed.amount + number))
        yield Told(placed.order, "asked")

    def receive_verdict(self, verdict: Verdict) -> Told:
        return Told(self.name, "good" if verdict.good else "bad")

    def receive_silence(self, silence: Unanswered[Check]) -> Told:
        return Told(self.name, f"no answer about {silence.question.amount}")

    name: str = "?"


class SlowOrder(Order):
    async def receive(self, placed: Placed) -> list[Output[Check] | Told]:
        await asyncio.sleep(0)
        self.name = placed.order
        return list(super().receive(placed))

    async def receive_verdict(self, verdict: Verdict) -> Told:
        await asyncio.sleep(0)
        return super().receive_verdict(verdict)


class NamedOrder(Order):
    def receive(self, placed: Placed) -> Iterator[Output[Check] | Told]:
        self.name = placed.order
        return super().receive(placed)


def decide(check: Check, spent: State[float]) -> Verdict | None:
    if check.customer == "nobody":
        return None
    spent.set(spent.get(0.0) + check.amount)
    return Verdict(spent.get(0.0) <= 20)


@dataclass
class Shop:
    now: ClassVar[Any] = None
    """The one that is being played: its actors ask its questions."""
    asker: type = NamedOrder
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        Shop.now = self
        self.app = App("shop")
        self.orders = self.app.stream("orders", Placed)
        self.told = self.app.stream("told", Told)
        self.checks = self.app.questions("checks", Check, answers=Verdict, timeout="10s")
        self.decide = self.app.service(answers=self.checks)(decide)
        self.order = self.app.actor(
            reads=self.orders, writes=self.told, asks=self.checks, name="order"
        )(self.asker)
        self.driver = Driver(self.app, **self.options)

    def place(self, order, customer="ann", amount=3.0):
        self.driver.pipe(self.orders, Placed(order, customer, amount))

    def texts(self):
        return sorted((each.order, each.text) for each in self.driver.read(self.told))


@pytest.mark.parametrize("asker", [NamedOrder, SlowOrder])
def test_an_answer_is_a_message_to_the_actor_that_asked(asker):
    shop = Shop(asker)
    shop.place("one", amount=3.0)
    shop.place("two", amount=18.0)
    assert shop.texts() == [("one", "asked"), ("one", "good"), ("two", "asked"), ("two", "bad")]
    assert shop.driver.facts(shop.order)["timers"] == 0


@pytest.mark.parametrize("asker", [NamedOrder, SlowOrder])
def test_a_question_that_nobody_answers_in_time_comes_back_once(asker):
    shop = Shop(asker)
    shop.place("one", "nobody")
    shop.driver.advance_clock("9s")
    assert shop.texts() == [("one", "asked")]
    shop.driver.crash()
    shop.driver.restart()
    shop.driver.advance_clock("1s")
    assert shop.texts() == [("one", "no answer about 3.0")]
    shop.driver.advance_clock("1h")
    assert shop.texts() == []


def test_an_answer_that_comes_too_late_is_dropped_and_counted():
    shop = Shop()
    shop.driver.stop(shop.decide)
    shop.place("one", amount=4.0)  # asks twice
    shop.driver.advance_clock("10s")
    shop.driver.restart()
    assert [text for _, text in shop.texts()] == [
        "asked",
        "no answer about 4.0",
        "no answer about 5.0",
    ]
    assert shop.driver.facts(shop.order)["late answers"] == 2


def test_a_call_that_fails_has_asked_nothing():
    shop = Shop()
    shop.place("one", amount=-1.0)
    assert len(shop.driver.dead_letters()) == 1
    assert shop.driver.read(shop.checks.stream) == []
    assert shop.driver.facts(shop.order)["timers"] == 0


def test_the_same_call_asks_under_the_same_id_after_a_crash():
    shop = Shop(options={"auto_commit": False})
    shop.place("one", amount=5.0)
    shop.driver.crash()
    shop.driver.restart()
    for _ in range(3):
        shop.driver.commit()
    asked = [dict(raw.headers()) for raw in shop.driver.read_raw(shop.checks.stream)]
    places = [each["penstock.question"].rpartition(b"/") for each in asked]
    assert [number for _, _, number in places] == [b"0", b"1", b"2"]
    assert {each["penstock.asker-key"] for each in asked} == {b"one"}


def test_answers_to_another_part_that_asks_the_same_are_not_for_this_one():
    shop = Shop()

    def other(message: Placed | Verdict | Unanswered[Check]) -> Output[Check] | Told | None:
        if isinstance(message, Placed):
            return ask(shop.checks, Check(message.customer, 0.0))
        return Told("other", f"{message}")

    more = shop.app.stream("more", Placed)
    shop.app.service(reads=more, writes=shop.told, asks=shop.checks)(other)
    driver = shop.driver = Driver(shop.app)
    driver.pipe(more, Placed("one", "ann", 1.0))
    assert shop.texts() == [("other", "Verdict(good=True)")]
    driver.pipe(more, Placed("two", "nobody", 1.0))
    driver.advance_clock("10s")
    assert "Unanswered(question=Check(customer='nobody', amount=0.0)" in shop.texts()[0][1]


def test_an_answer_may_be_given_later():
    app = App("shop")
    orders, told = app.stream("orders", Placed), app.stream("told", Told)
    checks = app.questions("checks", Check, answers=Verdict, timeout="1h")

    @app.actor(answers=checks)
    class Clerk:
        waiting: list[ReplyTo] = []  # noqa: RUF012 - every actor gets its own

        def receive(self, _: Check, context: Context, timers: Timers) -> None:
            if (reply_to := ReplyTo.of(context)) is not None:
                self.waiting.append(reply_to)
                timers.set("done", after="1m", time="processing")

        def on_timer(self, _: Timer) -> Iterator[Output[Verdict]]:
            while self.waiting:
                yield answer(checks, self.waiting.pop(0), Verdict(len(self.waiting) == 0))

    @app.service(reads=orders, writes=told, asks=checks)
    def buy(
        message: Placed | Verdict | Unanswered[Check], context: Context
    ) -> Output[Check] | Told | None:
        if isinstance(message, Placed):
            return ask(checks, Check(message.customer, message.amount))
        return Told((context.key or b"").decode(), f"{message}")

    driver = Driver(app)
    driver.pipe(orders, Placed("one", "ann", 1.0), Placed("two", "ann", 2.0))
    driver.crash()
    driver.restart()
    assert driver.read(told) == []
    driver.advance_clock("1m")
    assert sorted(each.order for each in driver.read(told)) == ["one", "two"]
    assert driver.facts(buy)["timers"] == 0


MOVES = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"), st.sampled_from("abc"), st.sampled_from(["ann", "bob", "nobody"])
        ),
        st.tuples(st.just("wait"), st.sampled_from("136"), st.just("")),
        st.tuples(st.just("crash"), st.just(""), st.just("")),
    ),
    max_size=25,
)


@pytest.mark.parametrize("asker", [NamedOrder, SlowOrder])
@settings(max_examples=settings().max_examples // 3)
@given(moves=MOVES)
def test_questions_and_answers_do_not_depend_on_crashes(asker, moves):
    calm, hurt = Shop(asker), None
    played(calm, moves, crashes=False)
    hurt = Shop(asker, {"auto_commit": False})
    played(hurt, moves, crashes=True)
    assert calm.texts() == hurt.texts()
    assert calm.driver.facts(calm.order)["timers"] == hurt.driver.facts(hurt.order)["timers"] == 0


def played(shop, moves, *, crashes):
    Shop.now = shop
    for number, (what, who, customer) in enumerate(moves):
        if what == "place":
            shop.place(who, customer, float(number % 4))
            for _ in range(4):  # a commit lets what it made visible go on
                shop.driver.commit() if not crashes or number % 3 else None
        elif what == "crash" and crashes:
            shop.driver.crash()
            shop.driver.restart()
        elif what == "wait":
            for _ in range(4):
                shop.driver.commit()
            shop.driver.advance_clock(timedelta(seconds=int(who)))
    for _ in range(4):
        shop.driver.commit()
    shop.driver.advance_clock("1m")
    for _ in range(4):
        shop.driver.commit()
