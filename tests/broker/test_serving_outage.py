"""A gateway while Kafka is away."""

import time

from penstock import App, record
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified

from .serving_site import open_door, until


@record(key="device")
class Reading:
    device: str
    celsius: float


def test_while_kafka_is_away_records_are_refused_and_none_is_lost(mortal_broker, tmp_path):
    kafka = mortal_broker.connection
    app = App(f"outage{time.time_ns()}")
    readings = app.stream(f"{app.name}.readings", Reading, partitions=1)
    app.gateway("door", takes=readings)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    acknowledged = set()
    with open_door(graph, kafka, tmp_path) as door:

        def post(number):
            answer = door.post(readings.name, {"device": "a", "celsius": number})
            if answer.status == 201:
                acknowledged.add(float(number))
            return answer

        assert post(0).status == 201
        mortal_broker.kill()
        until(lambda: door.get("/v1/health").status == 503, "the gateway is degraded")
        refused = post(1)
        assert (refused.status, refused.json["code"]) == (503, "kafka.away")
        assert int(refused.headers["retry-after"]) >= 1
        lines = door.lines(readings.name, b'{"device":"a","celsius":2}\n')
        assert lines.status == 503
        until(lambda: door.reports[-1].state == "degraded", "it reports that")
        mortal_broker.ensure()
        until(lambda: door.get("/v1/health").status == 200, "the gateway is well")
        assert post(3).status == 201
    kept = [r.value for r in LogReader(kafka).read(readings.name)]
    assert kept == [b'{"device":"a","celsius":%.1f}' % number for number in sorted(acknowledged)]
