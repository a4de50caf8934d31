"""What becomes of questions that a service fails on."""

import pytest

from penstock import App, Output, record
from penstock.core.graph.questions import ReplyTo, failure_in, question_headers
from penstock.questions import Unanswered, ask
from penstock.testing import Driver


@record(key="id")
class Order:
    id: str


@record(key="id")
class Check:
    id: str


@record(key="id")
class Told:
    id: str


@record()
class Verdict:
    good: bool = True


def shop(*, awaited):
    app = App("shop")
    orders = app.stream("orders", Order)
    told = app.stream("told", Told)
    checks = app.questions("checks", Check, answers=Verdict, timeout="10s")

    def fail(check: Check) -> Verdict:
        raise ValueError("it is too large")

    async def fail_later(check: Check) -> Verdict:
        raise ValueError("it is too large")

    app.service(answers=checks, name="clerk")(fail_later if awaited else fail)

    @app.actor(reads=orders, writes=told, asks=checks)
    class Buyer:
        id: str = ""

        def receive(self, order: Order) -> Output[Check]:
            self.id = order.id
            return ask(checks, Check(order.id))

        def receive_verdict(self, verdict: Verdict) -> Told:
            return Told(f"answered {verdict.good}")

        def receive_silence(self, silence: Unanswered[Check]) -> Told:
            return Told(f"silence about {silence.question.id}")

    app.gateway("door", takes=orders, offers=checks)
    return app, orders, told, checks, Buyer


def of_door(asker):
    to = ReplyTo(question="1", asker=asker, key=b"sixteen bytes id")
    return question_headers(to, keyed=True)


@pytest.mark.parametrize("awaited", [False, True])
def test_who_asked_over_a_gateway_is_told_that_the_service_failed_and_no_part_minds(awaited):
    app, orders, told, checks, buyer = shop(awaited=awaited)
    driver = Driver(app)
    driver.pipe(checks.stream, Check("a"), headers=of_door("shop.door"))
    driver.pipe(checks.stream, Check("b"), headers=of_door("elsewhere.door"))
    driver.pipe_raw(checks.stream, key=b"c", value=b"{", headers=of_door("shop.door"))
    driver.pipe(orders, Order("1"))
    raws = driver.read_raw(checks.answers)
    failures = [(raw.key(), raw.value(), failure_in(dict(raw.headers()))) for raw in raws]
    assert failures == [
        (b"sixteen bytes id", None, "user.raised"),
        (b"sixteen bytes id", None, "data.not-json"),
    ]
    driver.advance_clock("10s")
    assert driver.read(told) == [Told("silence about 1")]
    assert len(driver.dead_letters()) == 4  # the questions, and no failure beside them
    assert driver.counts(buyer).filtered >= 2
