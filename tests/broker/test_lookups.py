"""Look-ups in a real PostgreSQL and a real Valkey, which go away in the middle."""

import asyncio
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from tests.valkey_server import running_valkey

from penstock import App, record
from penstock.connectors import postgres_lookup, redis_keys, redis_lookup
from penstock.connectors.connector import Row
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.errors import ConfigurationError, DataError, TransientError


@pytest.fixture(scope="module")
def valkey():
    with running_valkey() as server:
        yield server


@pytest.fixture
def secret(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WORD", postgres.word)
    return {"address": postgres.address, "password": "env:TEST_POSTGRES_WORD"}


@record(key="id")
class Wide:
    id: str
    whole: int
    share: float
    exact: Decimal
    at: datetime
    day: date
    raw: bytes
    tags: list[str]
    note: str | None


@record(key=("shop", "id"))
class Small:
    shop: int
    id: str
    count: int = 0


WIDE = Wide(
    "a", 2**40, 1.5, Decimal("0.1"), datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), b"\xff\0",
    ["x", "ö"], None,
)  # fmt: skip
HOSTILE = ["'; DROP TABLE x; --", "{a,b}", "\\", '"', "NULL", "\0", "%s", "ö" * 900]


async def answers(definition, *keys):
    async with await definition.open() as opened:
        asked = (opened.get(*(key if isinstance(key, tuple) else (key,))) for key in keys)
        return await asyncio.gather(*asked, return_exceptions=True)


def test_rows_of_a_table_come_with_their_types_whatever_is_asked_for(postgres, secret):
    place = f'odd "{uuid4().hex[:8]}'
    quoted = '"' + place.replace('"', '""') + '"'
    postgres.run(
        f"CREATE TABLE {quoted} (id varchar(3), whole bigint, share float8, exact numeric,"
        " at timestamptz, day date, raw bytea, tags jsonb, note text, more inet)"
    )
    insert = f"INSERT INTO {quoted} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
    values = [WIDE.whole, WIDE.share, WIDE.exact, WIDE.at, WIDE.day, WIDE.raw, '["x", "ö"]', None]
    postgres.run(insert, ["a", *values])
    postgres.run(insert, ["abc", *values])
    postgres.run(insert, ["two", *values])
    postgres.run(insert, ["two", *values])
    made = postgres_lookup(place, record=Wide, key="id", **secret)
    found = asyncio.run(answers(made, "a", "abcd", "two", *HOSTILE))
    assert found[0] == WIDE
    assert found[1] is None  # not cut off to what its column could hold
    assert "several rows" in found[2].message
    assert [type(each) for each in found[3:]] == [
        DataError if "\0" in each else type(None) for each in HOSTILE
    ]
    by_whole = postgres_lookup(place, record=Wide, key=("whole", "id"), **secret)
    found = asyncio.run(answers(by_whole, (2**40, "a"), (2**40, "b"), (2**80, "a"), ("x", "a")))
    assert found[:2] == [WIDE, None]
    assert all(isinstance(each, DataError) for each in found[2:])
    by_id = postgres_lookup(place, record=Wide, key="more", **secret)
    assert [type(each) for each in asyncio.run(answers(by_id, "::1", "no address"))] == [
        type(None),
        DataError,
    ]
    assert asyncio.run(made.attempt()).startswith("it answers")
    for wrong in ({"key": "other"}, {"table": "no_such_table"}):
        given = {"table": place, "record": Wide, **secret, **wrong}
        with pytest.raises(ConfigurationError):
            asyncio.run(postgres_lookup(**given).attempt())


def test_a_server_that_ends_connections_is_asked_again_and_one_that_is_slow_given_up(
    postgres, secret
):
    place = f"t{uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {place} (shop int, id uuid, count int, PRIMARY KEY (shop, id))")
    one = UUID(int=7)
    postgres.run(f"INSERT INTO {place} VALUES (1, %s, 5)", [one])
    made = postgres_lookup(place, record=Small, **secret, fresh="0s", timeout="1s")

    async def ask():
        async with await made.open() as opened:
            assert (await opened.get(1, one)).count == 5
            postgres.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'penstock look-up'"
            )
            assert (await opened.get(1, str(one))) == Small(1, str(one), 5)
            with postgres.connect() as other, other.transaction():
                other.execute(f"LOCK TABLE {place}")
                with pytest.raises(TransientError, match="no answer within 1s"):
                    await opened.get(1, one)
            assert (await opened.get(1, one)).count == 5

    asyncio.run(ask())


@pytest.mark.parametrize("layout", ["hash", "json"])
def test_what_a_sink_keeps_in_redis_is_looked_up_again_whatever_is_in_it(valkey, layout):
    place = f"{uuid4().hex[:8]}:"
    codec = JsonCodec(record_type(Wide))
    kept = [
        WIDE,
        *(Wide(each, 0, 0.0, WIDE.exact, WIDE.at, WIDE.day, b"", [], each) for each in HOSTILE),
    ]
    sink = redis_keys(place, address=valkey.address, layout=layout)
    writer = sink.open(App("a").sink("s", sink, reads=App("a").stream("wide", Wide)))
    rows = [Row(each, codec.encode(each), n, "add", codec.key(each)) for n, each in enumerate(kept)]
    writer.write(0, rows, len(rows))
    writer.close()
    with valkey.connect() as connection:
        connection.lpush(f"{place}list", "x")
        connection.hset(f"{place}half", "id", b"\xff")
        connection.hset(f"{place}large", "id", "x" * (2 << 20))
    made = redis_lookup(place, record=Wide, address=valkey.address, layout=layout, fresh="0s")

    async def ask():
        async with await made.open() as opened:
            found = await asyncio.gather(*(opened.get(each.id) for each in kept))
            assert found == kept
            for wrong in ("list", "half", "large"):
                with pytest.raises(DataError):
                    await opened.get(wrong)
            assert await opened.get("none") is None
            with pytest.raises(DataError, match="is not a key of Wide"):
                await opened.get(7)
            valkey.kill()
            with pytest.raises(TransientError) as raised:
                await opened.get("a")
            assert raised.value.code == "connector.away"
            valkey.start()
            assert await opened.get("a") == WIDE

    asyncio.run(ask())
