"""Records in over WebSockets: acknowledged in order, with credit, while Kafka is there or away."""

import json
import time
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from penstock import App, record
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified

from .serving_site import open_door, until


@record(key="device")
class Reading:
    device: str
    celsius: float


def declared(kafka, name):
    app = App(name)
    readings = app.stream(f"{name}.readings", Reading, partitions=2, max_record="1KiB")
    app.gateway("door", takes=readings)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


def opened(door, stream):
    path = f"/v1/streams/{stream}/socket"
    return connect(f"ws://127.0.0.1:{door.port}{path}", open_timeout=60)


def reading(number, device="roof"):
    return json.dumps({"device": device, "celsius": number})


def acknowledged(client, count):
    """Return so many acknowledgements."""
    found = []
    while len(found) < count:
        found += json.loads(client.recv(timeout=60)).get("acknowledged", [])
    return found


def rest_of(client):
    """Return the messages up to the end."""
    found = []
    with suppress(ConnectionClosed):
        while True:
            found.append(json.loads(client.recv(timeout=60)))
    return found


def test_records_are_acknowledged_in_order_with_place_or_mistake(kafka, tmp_path):
    graph = declared(kafka, f"sockets{time.time_ns()}")
    stream = f"{graph.app}.readings"
    with open_door(graph, kafka, tmp_path) as door:
        with opened(door, stream) as client:
            assert json.loads(client.recv(timeout=60)) == {"credit": 1000}
            client.send(reading(1))
            client.send('{"device": "roof", "celsius": "warm"}')
            client.send(f"[{reading(2)}, {reading(3)}, 7]")
            client.send("no json")
            client.send(json.dumps({"device": "x" * 2000, "celsius": 1}))
            told = acknowledged(client, 7)
            assert [each["number"] for each in told] == [1, 2, 3, 4, 5, 6, 7]
            places = [told[at]["offset"] for at in (0, 2, 3)]
            assert places == sorted(set(places))
            errors = [told[at]["error"] for at in (1, 4, 5, 6)]
            assert [each["code"] for each in errors] == [
                "data.wrong-type",
                "data.wrong-type",
                "data.not-json",
                "data.too-large",
            ]
            assert errors[0]["path"] == "$.celsius"
            # A client that goes on sending beyond its credit waits; nothing is lost or disordered.
            for number in range(10, 5010):
                client.send(reading(number))
            more = acknowledged(client, 5000)
            assert [each["number"] for each in more] == list(range(8, 5008))
        kept = [json.loads(r.value)["celsius"] for r in LogReader(kafka).read(stream)]
        assert kept == [1, 2, 3, *range(10, 5010)]
        with opened(door, stream) as client:
            client.send("[1, 2")
            rest_of(client)
        assert client.protocol.close_reason == "data.not-json"
        with pytest.raises(InvalidStatus, match="404"), opened(door, "another"):
            pass
        # What is under way when the gateway leaves is acknowledged before.
        leaving = opened(door, stream)
        for number in range(100):
            leaving.send(reading(number, "cellar"))
        first = acknowledged(leaving, 1)
    told = [each for message in rest_of(leaving) for each in message["acknowledged"]]
    assert leaving.protocol.close_code == 1012
    kept = [r for r in LogReader(kafka).read(stream) if b"cellar" in r.value]
    assert len(kept) == len(first + told)


def test_while_kafka_is_away_there_is_no_credit_and_nothing_is_lost(mortal_broker, tmp_path):
    kafka = mortal_broker.connection
    graph = declared(kafka, f"away{time.time_ns()}")
    stream = f"{graph.app}.readings"
    with open_door(graph, kafka, tmp_path) as door, opened(door, stream) as client:
        client.recv(timeout=60)
        client.send(reading(0))
        assert acknowledged(client, 1)[0]["number"] == 1
        mortal_broker.kill()
        until(lambda: door.get("/v1/health").status == 503, "the gateway is degraded")
        client.send(reading(1))
        told = json.loads(client.recv(timeout=60))
        assert (told["credit"], told["why"]["code"]) == (0, "kafka.away")
        mortal_broker.ensure()
        assert json.loads(client.recv(timeout=60)) == {"credit": 1000}
        assert acknowledged(client, 1)[0]["number"] == 2
    kept = [json.loads(r.value)["celsius"] for r in LogReader(kafka).read(stream)]
    assert kept == [0, 1]
