"""The console tells whether the log answers, and of models what is on it."""

import threading
import time

import psutil
import pytest

from penstock import App, record
from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer
from penstock.cli.console.asking.models import ModelNews, ModelViews
from penstock.cli.console.contact import LogContact
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.reach import Reach
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.rules.check import verified
from penstock.models import ModelVersion, sealed
from penstock.serving.desk.offers import Asked

pytestmark = pytest.mark.broker


@record()
class Line:
    slope: float


@record(key="device")
class Score:
    device: str
    model: str
    version: int


def test_versions_are_told_with_their_figures_and_a_new_one_at_once(kafka, topic):
    app = App(topic.name("shop"))
    name = app.graph.app
    models = app.table(f"{name}.models", ModelVersion)
    scores = app.stream(f"{name}.scores", Score)
    graph = verified(app.graph)
    declare_application(graph, kafka)
    codec = JsonCodec(record_type(ModelVersion))

    def publish(*versions):
        with Producer(kafka) as producer:
            for number in versions:
                made = sealed("heat", number, Line(0.5), figures={"auc": 0.9 + number / 100})
                producer.send(models.topic.name, key=codec.key(made), value=codec.encode(made))

    publish(1, 2, 3)
    with Producer(kafka) as producer:
        producer.send(models.topic.name, key=b"junk", value=b"no version")
        value = b'{"device": "d", "model": "heat", "version": 3}'
        producer.send(scores.topic.name, key=b"d", value=value)
    reach = Reach(log=LogWatcher(lambda: kafka), graph=lambda: graph)
    found = ModelViews(reach).document(Asked())
    (table,) = found["tables"]
    assert [each["version"] for each in table["versions"]] == [3, 2, 1]
    assert table["versions"][0]["figures"] == {"auc": 0.93}
    assert table["unreadable"] == 1
    (said,) = found["said"]
    assert said["newest"][0]["value"]["version"] == 3
    heard, told = threading.Event(), []

    def hear(text):
        told.append(text)
        heard.set()

    with ModelNews(reach, hear, again_seconds=0.1):
        number = 4
        while not heard.wait(0.5) and number < 100:  # it may not follow the topic yet
            publish(number)
            number += 1
    assert told[0].startswith("model heat: version ")
    assert told[0].endswith(")")


def test_a_log_that_hangs_is_away_since_then_until_it_answers_again(mortal_broker):
    told = []
    watcher = LogWatcher(lambda: mortal_broker.connection)
    brokers = [psutil.Process(pid) for pid in mortal_broker.pids]

    def until(condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, told
            threading.Event().wait(0.05)

    with LogContact(watcher, told.append) as contact:
        until(lambda: contact.answers)
        assert contact.away() is None
        for each in brokers:
            each.suspend()
        try:
            until(contact.away)
            assert contact.away().seconds >= 4
            assert "penstock doctor" in contact.away().do
            assert not watcher.is_own
            until(lambda: told)
        finally:
            for each in brokers:
                each.resume()
        until(lambda: contact.away() is None and len(told) > 1)
    assert told[0] == "the log does not answer"
    assert told[1].startswith("the log answers again, after ")
