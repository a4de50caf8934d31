"""A table that the driver of a pipeline follows: its rows are those of the topic, whatever happens."""

import json
import threading
import time
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.errors import TransientError
from penstock.pipelines.lookups.follower import TOMBSTONES_LAST, TableFollower

LIMIT_SECONDS = 60


@record(key="device")
class Device:
    device: str
    site: str


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def table(kafka):
    found = App("follower").table(f"devices{uuid4().hex[:8]}", Device)
    Topics(kafka).declare([found.topic])
    return found


def send(kafka, table, *pairs: tuple[str, str | None]) -> None:
    with Producer(kafka) as producer:
        for device, site in pairs:
            value = None if site is None else json.dumps({"device": device, "site": site})
            producer.send(table.topic.name, key=device.encode(), value=value and value.encode())


def sites(follower: TableFollower, *devices: str) -> dict[str, str]:
    follower.catch_up()
    found = follower.store.find(("device",), [pa.array(devices, pa.string())])
    return {row["device"]: row["site"] for row in found.to_pylist()}


def test_a_table_is_followed_through_changes_deletions_and_what_is_no_record(
    kafka, table, tmp_path
):
    follower = TableFollower(kafka, table, tmp_path)
    assert sites(follower, "a") == {}
    send(kafka, table, ("a", "Rome"), ("b", "Oslo"), ("a", "Lima"))
    assert sites(follower, "a", "b", "c") == {"a": "Lima", "b": "Oslo"}
    with Producer(kafka) as producer:
        producer.send(table.topic.name, key=b"a", value=b"no json")
        producer.send(table.topic.name, key=b"a", value=b'{"device": "b", "site": "Bonn"}')
    send(kafka, table, ("b", None), ("c", "Graz"))
    assert sites(follower, "a", "b", "c") == {"a": "Lima", "c": "Graz"}
    by_site = follower.store.find(("site",), [pa.array(["Rome", "Graz"])])
    assert by_site.column("device").to_pylist() == ["c"]
    # What is not committed is not there; what comes before its end waits for it.
    with TransactionalProducer(kafka, f"{table.name}.writer") as writer:
        writer.begin()
        writer.send(table.topic.name, key=b"c", value=b'{"device": "c", "site": "Baku"}')
        writer._sender.flush()
        assert sites(follower, "c") == {"c": "Graz"}
        writer.commit()
    # The end of a transaction is on the log a moment after the commit returns.
    deadline = time.monotonic() + LIMIT_SECONDS
    while sites(follower, "c") != {"c": "Baku"}:
        assert time.monotonic() < deadline


def test_a_table_that_may_have_lost_deletions_or_is_another_one_is_read_anew(
    kafka, table, tmp_path
):
    clock = Clock()
    follower = TableFollower(kafka, table, tmp_path, clock=clock)
    send(kafka, table, ("a", "Rome"), ("b", "Oslo"))
    assert sites(follower, "a", "b") == {"a": "Rome", "b": "Oslo"}
    clock.now += TOMBSTONES_LAST.total_seconds() + 1
    segments = follower.store.segments
    assert sites(follower, "a", "b") == {"a": "Rome", "b": "Oslo"}
    assert follower.store.segments == segments
    Topics(kafka).delete([table.topic.name])
    Topics(kafka).declare([table.topic])
    send(kafka, table, ("a", "Kyiv"), ("c", "Graz"), ("d", "Bonn"))
    assert sites(follower, "a", "b", "c") == {"a": "Kyiv", "c": "Graz"}


def test_reading_a_table_ends_when_the_pipeline_stops_and_goes_on_later(kafka, table, tmp_path):
    stop = threading.Event()
    follower = TableFollower(kafka, table, tmp_path, stop=stop)
    send(kafka, table, ("a", "Rome"))
    stop.set()
    with pytest.raises(TransientError, match="being stopped"):
        follower.catch_up()
    stop.clear()
    assert sites(follower, "a") == {"a": "Rome"}
