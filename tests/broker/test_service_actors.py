"""Actors on a real broker: they ask, are passivated and waked, and go on from a disk."""

from collections import Counter
from datetime import timedelta
from types import SimpleNamespace

import pytest

from penstock import App, Output, State, Timer, Timers, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.records.codec import JsonCodec
from penstock.questions import Unanswered, ask

from . import service_worker as kit

ORDERS = 300


@record(key="order")
class Placed:
    order: str
    customer: str


@record(key="customer")
class Check:
    customer: str


@record()
class Verdict:
    number: int


@record(key="order")
class Told:
    order: str
    text: str


class Shop:
    def __init__(self, name):
        app = self.app = App(name)
        self.orders = app.stream(f"{name}.orders", Placed)
        self.told = app.stream(f"{name}.told", Told)
        self.checks = checks = app.questions(
            f"{name}.checks", Check, answers=Verdict, timeout="40s"
        )

        @app.service(answers=checks)
        def credit(check: Check, seen: State[int]) -> Verdict | None:
            if check.customer == "nobody":
                return None
            seen.set(seen.get(0) + 1)
            return Verdict(seen.get(0))

        @app.actor(reads=self.orders, writes=self.told, asks=checks, idle_after="500ms")
        class Order:
            id: str = ""
            told: int = 0

            def receive(self, placed: Placed, timers: Timers) -> Output[Check]:
                self.id = placed.order
                timers.set("done", after="2s", time="processing")
                slow = timedelta(seconds=2) if placed.customer == "nobody" else None
                return ask(checks, Check(placed.customer), timeout=slow)

            def receive_verdict(self, _: Verdict) -> Told:
                self.told += 1
                return Told(self.id, f"verdict {self.told}")

            def receive_silence(self, silence: Unanswered[Check]) -> Told:
                self.told += 1
                return Told(self.id, f"silence {self.told} {silence.question.customer}")

            def on_timer(self, timer: Timer) -> Told:
                return Told(timer.key, "done")


def texts(kafka, shop):
    codec = JsonCodec(shop.told.record)
    told = [codec.decode(raw.value) for raw in LogReader(kafka).read(shop.told.topic.name)]
    return Counter((each.order, each.text.partition(" ")[0]) for each in told)


@pytest.fixture
def shop(kafka, topic):
    shop = Shop(topic.name("app"))
    Topics(kafka).declare(shop.app.graph.topics())
    codec = JsonCodec(shop.orders.record)
    with Producer(kafka) as producer:
        for number in range(ORDERS):
            placed = Placed(f"o{number}", "nobody" if number % 10 == 0 else f"c{number % 7}")
            name = shop.orders.topic.name
            producer.send(name, key=codec.key(placed), value=codec.encode(placed))
    return shop


def test_actors_ask_are_passivated_and_go_on_from_their_disk(kafka, shop, tmp_path):
    app = SimpleNamespace(app=shop.app)
    disk = kit.on_disk(str(tmp_path))
    with kit.InThread(kafka, app, "Order", settings=disk) as running:
        # Nobody answers yet: the questions wait, on the disk, for the next run.
        kit.eventually(
            lambda: sum(each[1] == "silence" for each in texts(kafka, shop)) == ORDERS // 10,
            what="those that nobody checks",
        )
        kit.eventually(
            lambda: running.last("Order").detail["actors in memory"] == "0", what="all are idle"
        )
        assert running.last("Order").metrics["actors_passivated_total"] >= ORDERS
    assert running.error is None
    with kit.InThread(kafka, app, "Order", "credit", settings=disk) as running:
        kit.eventually(lambda: len(texts(kafka, shop)) == 2 * ORDERS, what="all are answered")
        kit.eventually(
            lambda: running.last("Order").detail.get("timers") == "0", what="no question is open"
        )
        assert running.last("Order").metrics["actors_waked_total"] > 0
        assert running.last("Order").metrics["actors_started_total"] == 0
    assert running.error is None
    assert set(texts(kafka, shop).values()) == {1}
