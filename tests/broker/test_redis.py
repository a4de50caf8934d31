"""Keys, channels and streams of a real Valkey, which is killed in the middle."""

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from tests.valkey_server import running_valkey

from penstock import App, record
from penstock.connectors import redis_channel, redis_keys, redis_stream
from penstock.connectors.connector import Row
from penstock.connectors.source.intake import Intake
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink, try_source


@pytest.fixture(scope="module")
def valkey():
    with running_valkey() as server:
        yield server


@pytest.fixture
def place():
    return f"{uuid4().hex[:8]}:"


@record(key="id")
class Small:
    id: str
    count: int = 0
    at: datetime | None = None


CODEC = JsonCodec(record_type(Small))


def row(number: int, *fields, change="add") -> Row:
    made = Small(*fields)
    return Row(made, CODEC.encode(made), number, change, CODEC.key(made))


def sink_of(connector):
    return App("shop").sink("s", connector, reads=App("shop").stream("small", Small))


def crash(valkey):
    valkey.kill()
    valkey.start()


@pytest.mark.parametrize("layout", ["hash", "json"])
def test_keys_pass_the_trial_while_the_server_is_killed(valkey, place, layout):
    def outside():
        with valkey.connect() as connection:
            for key in connection.scan_iter(f"{place}*"):
                if layout == "json":
                    yield Small(**json.loads(connection.get(key)))
                else:
                    found = connection.hgetall(key)
                    yield Small(found[b"id"].decode(), int(found[b"count"]))

    def clear():
        with valkey.connect() as connection:
            for key in connection.scan_iter(f"*{place}*"):
                connection.delete(key)

    some = [Small(f"d{n}", n) for n in range(120)]
    made = redis_keys(place, address=valkey.address, layout=layout)
    try_sink(made, some, outside=outside, clear=clear, disturb=lambda: crash(valkey), runs=2)


def test_entries_of_streams_pass_the_trial_while_the_server_is_killed(valkey, place):
    with valkey.connect() as connection:
        pipe = connection.pipeline()
        for n in range(2_500):
            pipe.xadd(f"{place}a", {"id": f"x{n}", "count": n})
            pipe.xadd(f"{place}b", {b"raw": b"\xff"}) if n < 10 else None
        pipe.execute()
    made = redis_stream((f"{place}a", f"{place}b"), address=valkey.address)
    found = try_source(made, items=2_510, runs=2, disturb=lambda: crash(valkey))
    assert found[f"{place}a"] == [{"id": f"x{n}", "count": str(n)} for n in range(2_500)]
    app = App("shop")
    intake = Intake(app.source("s", made, into=app.stream("small", Small)))
    with made.attach() as attached:
        first = attached.open(f"{place}a", None).read()[0]
    assert intake.take(first).value == b'{"id":"x0","count":0,"at":null}'


HOSTILE = "\r\n*1\r\n$8\r\nFLUSHALL\r\n\0 'ö"


def test_what_is_under_a_key_is_replaced_deleted_and_expires_whatever_is_in_it(valkey, place):
    made = redis_keys(place, address=valkey.address, expire="1h")
    at = datetime(2026, 11, 19, tzinfo=UTC)
    with valkey.connect() as connection:
        connection.set(f"{place}a", "of another type")
        writer = made.open(sink_of(made))
        writer.write(0, [row(0, "a", 1, at), row(1, HOSTILE, 2), row(2, "b", 1)], 3)
        assert connection.hgetall(f"{place}a") == {
            b"id": b"a",
            b"count": b"1",
            b"at": b"2026-11-19T00:00:00Z",
        }
        assert connection.hget(f"{place}{HOSTILE}", "id") == HOSTILE.encode()
        assert 3_500_000 < connection.pttl(f"{place}a") <= 3_600_000
        gone = Row(Small("b"), b"", 4, "delete", b"b")
        writer.write(0, [row(3, "a", 5, change="withdraw"), gone], 5)
        assert list(connection.scan_iter(f"{place}*")) == [f"{place}{HOSTILE}".encode()]
        writer.close()


def test_listeners_get_each_record_of_a_stream(valkey, place):
    made = redis_channel(place, address=valkey.address)
    with valkey.connect() as connection, connection.pubsub() as listening:
        listening.subscribe(place)
        writer = made.open(sink_of(made))
        writer.write(0, [row(0, "a"), row(1, "a", 2), row(2, "a", 2, change="withdraw")], 3)
        messages = []
        for _ in range(1_000):
            found = listening.get_message(timeout=0.1)
            if found and found["type"] == "message":
                messages.append(json.loads(found["data"])["count"])
            if len(messages) == 2:
                break
        assert messages == [0, 2]
        again = made.open(sink_of(made))
        assert again.positions() == {0: 3}
        again.write(0, [row(3, "b")], 4)
        with pytest.raises(TransientError, match="another run of s has written"):
            writer.write(0, [row(3, "b")], 4)
        writer.close()
        again.close()


def test_entries_that_are_gone_degrade_the_source_and_a_new_stream_is_refused(valkey, place):
    made = redis_stream(place, address=valkey.address)
    with valkey.connect() as connection, made.attach() as attached:
        for n in range(10):
            connection.xadd(place, {"n": n}, id=f"{n + 1}-0")
        reading = attached.open(place, None)
        position = reading.position_after(reading.read()[1])
        assert position == "2-0"
        connection.xtrim(place, maxlen=3, approximate=False)
        left = attached.open(place, position)
        assert [item.content["n"] for item in left.read()] == ["7", "8", "9"]
        assert "may be lost" in attached.complaint()
        connection.delete(place)
        connection.xadd(place, {"n": 0}, id="1-0")
        with pytest.raises(ConfigurationError, match="ends at 1-0"):
            attached.open(place, position)
        with pytest.raises(ConfigurationError, match="is no identifier"):
            attached.open(place, "x")


def test_connections_are_tried_and_what_is_wrong_is_told(valkey, place, monkeypatch):
    made = redis_keys(place, address=valkey.address)
    assert made.attempt(sink_of(made)) == "it answers; 0 records were written so far"
    monkeypatch.setenv("TEST_CACHE_WORD", "open sesame")
    with valkey.connect() as connection:
        connection.acl_setuser("reader", enabled=True, passwords="+another", commands=["+@all"])
    known = valkey.address.replace("//", "//reader@")
    wrong = redis_keys(place, address=known, password="env:TEST_CACHE_WORD")
    with pytest.raises(ConfigurationError) as raised:
        wrong.attempt(sink_of(wrong))
    assert "sesame" not in str(raised.value)
    away = redis_stream("x", address="redis://127.0.0.1:1/0")
    source = App("shop").source("in", away, into=App("shop").stream("small", Small))
    with pytest.raises(TransientError) as missed:
        away.attempt(source)
    assert missed.value.code == "connector.away"


@pytest.mark.parametrize(
    "made",
    [
        redis_keys("", address="redis://x"),
        redis_keys("penstock:x", address="redis://x"),
        redis_keys("a:", address="http://x"),
        redis_keys("a:", address="redis://u:sesame@x"),
        redis_keys("a:", address="redis://x", password="sesame"),
        redis_keys("a:", address="redis://x", layout="xml"),
        redis_keys("a:", address="redis://x", expire="0s"),
        redis_channel("", address="redis://x"),
    ],
)
def test_each_wrong_option_of_a_sink_is_a_problem_of_the_application(made):
    app = App("shop")
    app.sink("s", made, reads=app.stream("small", Small))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)


def test_a_stream_has_a_name():
    app = App("shop")
    app.source("s", redis_stream((), address="redis://x"), into=app.stream("small", Small))
    assert [problem.code for problem in check(app.graph)] == ["source.option"]
