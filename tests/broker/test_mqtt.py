"""Topics of a real MQTT broker: read while the reader dies at random steps, and written."""

import json
import random
import threading
from contextlib import contextmanager
from uuid import uuid4

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from tests.mqtt_broker import LIMIT_SECONDS, mosquitto, running_broker

from penstock import App, record
from penstock.connectors import mqtt_topic, mqtt_topics
from penstock.connectors.connector import Row, RowsRefusedError
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink

SESSIONS = pytest.mark.skipif(mosquitto() is None, reason="there is no mosquitto on this machine")


@pytest.fixture(scope="module")
def broker():
    with running_broker() as running:
        yield running


@pytest.fixture
def place():
    return f"t{uuid4().hex[:8]}"


@record(key="device")
class Small:
    device: str
    count: int = 0


@contextmanager
def known_client(broker, **given):
    client = Client(CallbackAPIVersion.VERSION2, **given)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def sent(client, topic, payloads, *, qos=2, retain=False):
    infos = [client.publish(topic, each, qos=qos, retain=retain) for each in payloads]
    for each in infos:
        each.wait_for_publish(LIMIT_SECONDS)


class Reader:
    """Reads as a source does, and keeps what that keeps: records and position together."""

    def __init__(self, connector, seed=None):
        self.connector = connector
        self.chance = random.Random(seed) if seed is not None else None
        self.found, self.position, self.reading = [], None, None

    def turn(self):
        """Read once; where there is a chance, die before or after what was read is kept."""
        if self.reading is None:
            self.reading = self.connector.open("", self.position)
        items = self.reading.read()
        # mosquitto 2.0 sends a message again whose PUBREL it owed, if two connections end before
        # it got to that; in front of its answer to SUBSCRIBE it has.
        dies = self.chance is not None and self.reading.granted and self.chance.random() < 0.3
        kept = items[: self.chance.randint(0, len(items))] if dies else items
        if kept:
            self.position = json.loads(json.dumps(self.reading.position_after(kept[-1])))
            self.found += [item.content for item in kept]
        elif not items and not (dies and self.chance.random() < 0.5):
            self.position = json.loads(json.dumps(self.reading.moved())) or self.position
        if dies:
            self.die()
        return len(items)

    def die(self):
        self.reading._wire.close(politely=False)
        self.reading = None

    def until(self, condition):
        pause = threading.Event()
        for _ in range(LIMIT_SECONDS * 200):
            try:
                if not self.turn():
                    pause.wait(0.005)
            except TransientError:
                if self.reading is not None:
                    self.die()
                pause.wait(0.05)
            if condition():
                return
        raise AssertionError(f"it did not come about in time: {len(self.found)} found")


@SESSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_a_reader_that_dies_at_any_step_has_each_message_and_with_qos_2_once(broker, place, qos):
    made = mqtt_topics(f"{place}/#", client=place, address=broker.address)
    reader = Reader(made, seed=7)
    reader.until(lambda: reader.position is not None)
    expected = [b"%d" % n for n in range(600)]
    with known_client(broker) as client:
        writing = threading.Thread(
            target=sent, args=[client, f"{place}/x", expected], kwargs={"qos": qos}
        )
        writing.start()
        reader.until(lambda: len(set(reader.found)) >= 300)
        writing.join()
        reader.until(lambda: len(set(reader.found)) == 600)
        reader.chance = None
        reader.until(lambda: reader.position["held"] == [])
    assert set(reader.found) == set(expected)
    if qos == 2:
        assert len(reader.found) == 600
    reader.die()


@SESSIONS
def test_messages_of_the_time_when_nobody_listens_are_kept_and_retained_ones_come_once(
    broker, place
):
    made = mqtt_topics(
        (f"{place}/a", f"{place}/b"), client=place, address=broker.address, whole=True
    )
    reader = Reader(made)
    with known_client(broker) as client:
        sent(client, f"{place}/a", [b"kept"], retain=True)
        reader.until(lambda: len(reader.found) == 1)
        reader.until(lambda: reader.position["held"] == [])
        reader.die()
        sent(client, f"{place}/b", [b"away 1", b"away 2"])
        broker.stop()
        broker.start()
        reader.until(lambda: len(reader.found) == 3)
        reader.until(lambda: reader.position["held"] == [])
        reader.die()
        with known_client(broker, client_id=place, clean_session=True):
            pass  # the session is gone
        reader.until(lambda: reader.reading is not None and "forgotten" in reader.reading.complaint)
        reader.until(lambda: len(reader.found) == 4)  # the retained one: this is a new session
    assert [(each["topic"][-1], each["payload"], each["retained"]) for each in reader.found] == [
        ("a", "kept", True),
        ("b", "away 1", False),
        ("b", "away 2", False),
        ("a", "kept", True),
    ]
    reader.die()


def test_messages_of_topics_are_read_and_one_that_is_too_long_says_so(broker, place):
    made = mqtt_topics(f"{place}/+", client=place, address=broker.address, max_message="1KiB")
    reading = made.open("", None)
    assert reading.read() == []
    found, pause = [], threading.Event()
    with known_client(broker) as client:
        reading.read()
        sent(client, f"{place}/x", [b"one", b"x" * 5_000, b"\xff", b""])
        for _ in range(LIMIT_SECONDS * 100):
            found += reading.read()
            if len(found) >= 4:
                break
            pause.wait(0.01)
    assert [item.content[:3] for item in found] == [b"one", b"xxx", b"\xff", b""]
    assert found[1].fault().code == "data.message-too-long"
    assert len(found[1].content) == 1_024
    reading.close()
    with pytest.raises(ConfigurationError, match="is no position"):
        made.open("", 7)


def test_a_sink_passes_the_trial_and_values_do_not_change_the_levels_of_topics(broker, place):
    heard: list[tuple[str, bytes]] = []
    with known_client(broker) as client:
        client.on_message = lambda _, __, message: heard.append((message.topic, message.payload))
        ready = threading.Event()
        client.on_subscribe = lambda *_: ready.set()
        client.subscribe(f"{place}/#", qos=2)
        assert ready.wait(LIMIT_SECONDS)
        made = mqtt_topic(f"{place}/{{device}}/count", address=broker.address, qos=2)
        some = [Small(f"d {n}", n) for n in range(60)]

        def outside():
            pause = threading.Event()
            for _ in range(LIMIT_SECONDS * 20):
                if len({payload for _, payload in heard}) == len(some):
                    break
                pause.wait(0.05)
            return [Small(**json.loads(payload)) for _, payload in heard]

        try_sink(made, some, outside=outside, clear=heard.clear, runs=2)
        assert {topic for topic, _ in heard} == {f"{place}/d {n}/count" for n in range(60)}
        app = App("plant")
        sink = app.sink("s", made, reads=app.stream("small", Small))
        codec = JsonCodec(record_type(Small))
        hostile = ["a/b", "+", "#", "", "$SYS", "a\0b", "\n", "x" * 2_000]
        rows = [Row(Small(each), codec.encode(Small(each)), n) for n, each in enumerate(hostile)]
        writer = made.open(sink)
        with pytest.raises(RowsRefusedError) as raised:
            writer.write(0, rows, len(rows))
        assert sorted(raised.value.refusals) == list(range(len(hostile)))
        writer.close()


def test_a_table_is_kept_as_retained_messages_and_a_deletion_removes_one(broker, place):
    made = mqtt_topic(f"{place}/{{device}}", address=broker.address, retain=True)
    app = App("plant")
    writer = made.open(app.sink("s", made, reads=app.table("small", Small)))
    codec = JsonCodec(record_type(Small))
    rows = [Row(Small(each), codec.encode(Small(each)), n) for n, each in enumerate("ab")]
    writer.write(0, [*rows, Row(Small("a"), b"", 2, "delete")], 3)
    writer.close()
    heard: list[str] = []
    enough = threading.Event()
    with known_client(broker) as client:

        def on_message(_, __, message):
            heard.append(message.topic)
            if message.topic.endswith("/end"):
                enough.set()

        client.on_message = on_message
        client.subscribe(f"{place}/#", qos=1)
        sent(client, f"{place}/end", [b"x"], qos=1)
        assert enough.wait(LIMIT_SECONDS)
    assert f"{place}/b" in heard
    assert f"{place}/a" not in heard


def test_connections_are_tried_and_a_broker_that_is_away_is_waited_for(broker, place):
    app = App("plant")
    stream = app.stream("small", Small)
    listening = mqtt_topics(place, client=place, address=broker.address)
    telling = mqtt_topic(place, address=broker.address)
    source = app.source("in", listening, into=stream)
    sink = app.sink("out", telling, reads=stream)
    assert listening.attempt(source) == "it answers in"
    assert telling.attempt(sink) == "it answers out"
    away = mqtt_topics(place, client=place, address="mqtt://127.0.0.1:1")
    with pytest.raises(TransientError) as raised:
        away.open("", None)
    assert raised.value.code == "connector.away"
    strange = mqtt_topic(f"{place}/{{count}}/{{other}}", address=broker.address)
    with pytest.raises(ConfigurationError, match="'other'"):
        strange.open(app.sink("strange", strange, reads=stream))


@pytest.mark.parametrize(
    "made",
    [
        mqtt_topics("a/#/b", client="c", address="mqtt://x"),
        mqtt_topics("a+", client="c", address="mqtt://x"),
        mqtt_topics((), client="c", address="mqtt://x"),
        mqtt_topics("a", client="", address="mqtt://x"),
        mqtt_topics("a", client="c", address="http://x"),
        mqtt_topics("a", client="c", address="mqtt://u:sesame@x"),
        mqtt_topics("a", client="c", address="mqtt://x", password="sesame"),
        mqtt_topics("a", client="c", address="mqtt://x", qos=3),
    ],
)
def test_each_wrong_option_is_a_problem_of_the_application(made):
    app = App("plant")
    app.source("in", made, into=app.stream("small", Small))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)


@pytest.mark.parametrize(
    "options", [{"topic": "a/#"}, {"topic": "a/{x"}, {"qos": 0}, {"address": "mqtt://x/path"}]
)
def test_each_wrong_option_of_a_sink_is_a_problem_of_the_application(options):
    app = App("plant")
    made = mqtt_topic(**{"topic": "a", "address": "mqtt://x", **options})
    app.sink("out", made, reads=app.stream("small", Small))
    assert [problem.code for problem in check(app.graph)] == ["source.option"]
