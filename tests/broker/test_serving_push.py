"""Changes of a table pushed as server-sent events, and gone on with after a break."""

import http.client
import json
import time
from contextlib import contextmanager

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified

from .serving_site import LIMIT_SECONDS, open_door


@record(key="word")
class Count:
    word: str
    count: int


class Events:
    """The events of one answer, one after the other."""

    def __init__(self, response):
        self._response = response
        self.last = ""

    def next(self):
        found = {}
        while line := self._response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            found[name] = value
        if "event" not in found:
            return self.next()
        self.last = found.get("id", self.last)
        return found["event"], json.loads(found["data"])


@contextmanager
def listening(door, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.getheader("content-type") == "text/event-stream"
        yield Events(response)
    finally:
        connection.close()


def test_each_change_is_told_once_with_what_was_before_also_over_a_break(kafka, tmp_path):
    app = App(f"push{time.time_ns()}")
    counts = app.table(f"{app.name}.counts", Count, partitions=2)
    app.gateway("door", shows=counts)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())

    def put(word, count):
        value = None if count is None else b'{"word":"%s","count":%d}' % (word.encode(), count)
        with Producer(kafka) as producer:
            producer.send(counts.name, key=word.encode(), value=value)

    def row(word, count):
        return {"word": word, "count": count}

    put("apple", 1)
    put("bread", 1)
    path = f"/v1/tables/{counts.name}/changes?prefix=a"
    with open_door(graph, kafka, tmp_path) as door:
        with listening(door, path) as events:
            assert events.next() == ("row", {"key": "apple", "value": row("apple", 1)})
            assert events.next() == ("ready", {})
            put("apple", 2)
            put("bread", 2)
            put("avocado", 1)
            first = [events.next()[1], events.next()[1]]
            reached = events.last
        assert {"key": "apple", "before": row("apple", 1), "value": row("apple", 2)} in first
        assert {"key": "avocado", "before": None, "value": row("avocado", 1)} in first
        put("avocado", None)
        put("apple", 3)
        with listening(door, path, **{"Last-Event-ID": reached}) as events:
            assert events.next() == ("ready", {"resumed": True})
            again = [events.next()[1], events.next()[1]]
            put("apple", 4)
            assert events.next()[1]["value"] == row("apple", 4)
        assert {"key": "avocado", "before": row("avocado", 1), "value": None} in again
        assert {"key": "apple", "before": row("apple", 2), "value": row("apple", 3)} in again
        with listening(door, path, **{"Last-Event-ID": "0:999999,1:999999"}) as events:
            assert events.next() == ("row", {"key": "apple", "value": row("apple", 4)})
        assert door.get(path.replace("counts", "none")).json["code"] == "table.unknown"
