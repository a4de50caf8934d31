"""A table that the driver of a pipeline follows: its rows are those of the topic, whatever happens."""

import json
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.pipelines.lookups.follower import TOMBSTONES_LAST, TableFollower


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
    assert sites(follower, "c") == {"c": "Baku"}


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
