"""Timers on a real broker: by the clock without records, and over a kill."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from penstock import App, EventTime, State, Timer, Timers, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.records.codec import JsonCodec

from . import service_worker as kit

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = 5000


@record(key="order", time="at")
class Order:
    order: str
    at: datetime


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


@record(key="order")
class Unpaid:
    order: str


@pytest.fixture
def app(kafka, topic):
    return kit.declared(topic.name("app"), kafka)


def rung(kafka, app):
    return sorted((raw.key or b"").decode() for raw in LogReader(kafka).read(app.bells.topic.name))


def test_a_timer_by_the_clock_goes_off_without_any_record(kafka, app):
    with kit.InThread(kafka, app, "remind") as running:
        kit.eventually(lambda: running.state("remind") == "running", what="it runs")
        kit.send_words(kafka, app, ["a", "b"])
        kit.eventually(lambda: rung(kafka, app) == ["a", "b"], what="both timers have gone off")
        kit.eventually(
            lambda: running.last("remind").detail.get("timers") == "0", what="none is left"
        )
    assert running.error is None


def test_a_backlog_of_two_streams_sets_off_what_was_not_cancelled_in_time(kafka, topic):
    app = App(topic.name("app"))
    orders = app.stream(
        f"{app.name}.orders", Order, event_time=EventTime(idle_after="3s"), partitions=1
    )
    payments = app.stream(
        f"{app.name}.payments", Payment, event_time=EventTime(idle_after="3s"), partitions=1
    )
    unpaid = app.stream(f"{app.name}.unpaid", Unpaid, partitions=1)

    @app.service(reads=(orders, payments), writes=unpaid, name="watch")
    class Watch:
        def process(self, came: Order | Payment, paid: State[bool], timers: Timers) -> None:
            if isinstance(came, Payment):
                paid.set(value=True)
                timers.cancel("unpaid")
            elif not paid.get(default=False):
                timers.set("unpaid", after="10m")

        def on_timer(self, timer: Timer) -> Unpaid:
            return Unpaid(timer.key)

    Topics(kafka).declare(app.graph.topics())
    with Producer(kafka) as producer:
        for name, count, late in ((orders, ORDERS, 0), (payments, ORDERS - 100, 60)):
            codec = JsonCodec(name.record)
            for number in range(count):
                at = START_AT + timedelta(seconds=10 * number + late)
                made = name.record.cls(f"o{number}", at)
                producer.send(name.topic.name, key=codec.key(made), value=codec.encode(made))
    with kit.InThread(kafka, SimpleNamespace(app=app), "watch") as running:
        kit.eventually(
            # What comes after the last payment is known when payments have been silent.
            lambda: len(list(LogReader(kafka).read(unpaid.topic.name))) >= 100 - 60,
            what="those that were not paid",
        )
    assert running.error is None
    found = [raw.key for raw in LogReader(kafka).read(unpaid.topic.name)]
    assert found == [b"o%d" % number for number in range(ORDERS - 100, ORDERS - 60)]


def test_timers_of_a_killed_worker_go_off_once_in_the_next(kafka, app):
    words = [f"w{number}" for number in range(50)]
    kit.send_words(kafka, app, words)
    with kit.InProcess(kafka, app, "remind") as worker:
        kit.eventually(
            lambda: kit.committed_records(kafka, app.reminders) > 0, what="timers are committed"
        )
        worker.kill()
    with kit.InProcess(kafka, app, "remind"):
        kit.eventually(lambda: len(rung(kafka, app)) >= len(words), what="all have gone off")
    assert rung(kafka, app) == sorted(words)
