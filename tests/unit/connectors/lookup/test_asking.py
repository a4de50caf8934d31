"""What an open look-up asks its store for, keeps, and says when the store is away."""

import asyncio
import copy
from datetime import timedelta

import pytest

from penstock import record
from penstock.connectors import lookup
from penstock.connectors.lookup.cache import Ages, RowCache
from penstock.errors import ConfigurationError, DataError, DefinitionError, TransientError


@record(key="id")
class Small:
    id: str
    count: int = 0


class Store:
    """Rows in a dict; it counts what it is asked for."""

    def __init__(self, rows: dict, *, broken: tuple = (), gate: asyncio.Event | None = None):
        self.rows, self.broken, self.gate = rows, broken, gate
        self.asked: list[list] = []
        self.opened = self.closed = 0
        self.away: Exception | None = None
        self.waited = asyncio.Event()

    async def connect(self):
        self.opened += 1
        return self

    async def fetch(self, keys):
        self.asked.append(list(keys))
        if self.gate is not None:
            self.waited.set()
            await self.gate.wait()
        if self.away is not None:
            raise self.away
        if any(key in self.broken for key in keys):
            raise DataError("no such key can be", code="lookup.key")
        return [self.rows.get(key) for key in keys]

    async def close(self):
        self.closed += 1


ROWS = {f"k{n}": {"id": f"k{n}", "count": n} for n in range(50)}


def asking(store, body, **options):
    async def ask():
        async with await lookup(store.connect, record=Small, **options).open() as opened:
            return await body(opened)

    return asyncio.run(ask())


def test_keys_that_are_asked_for_together_go_together_and_each_once():
    store = Store(ROWS)

    async def body(opened):
        names = [f"k{n % 30}" for n in range(60)]
        return await asyncio.gather(*(opened.get(name) for name in names))

    found = asking(store, body, at_once=20)
    assert [each.count for each in found] == [n % 30 for n in range(60)]
    assert [len(keys) for keys in store.asked] == [20, 10]
    assert (store.opened, store.closed) == (1, 1)


def test_rows_and_absences_are_kept_for_their_time_and_up_to_a_number():
    store = Store(ROWS)

    async def body(opened):
        for key in ("k1", "k1", "none", "none", "k2", "k1"):
            assert (await opened.get(key) is None) == (key == "none")

    asking(store, body, cache=2, absent="1h")
    assert store.asked == [["k1"], ["none"], ["k2"], ["k1"]]
    store.asked.clear()
    asking(store, body, fresh="0s", absent="0s")
    assert len(store.asked) == 6


def test_a_cache_forgets_what_was_asked_for_longest_ago_and_what_is_too_old():
    ages = Ages(fresh=timedelta(seconds=2), absent=timedelta(seconds=1), stale=timedelta(seconds=9))
    cache = RowCache(most=2, ages=ages)
    cache.put("a", "row", at=0.0)
    cache.put("b", None, at=0.0)
    assert cache.fresh("b", at=0.5).row is None
    assert cache.fresh("b", at=1.0) is None
    assert cache.fresh("a", at=1.9).row == "row"
    assert cache.stale("a", at=8.9).row == "row"
    assert cache.stale("a", at=9.0) is None
    cache.put("c", "row", at=2.0)
    assert cache.stale("b", at=2.0) is None
    assert len(cache) == 2


def test_a_key_that_the_store_does_not_take_is_found_and_the_others_have_their_rows():
    store = Store(ROWS, broken=("k7", "k31"))

    async def body(opened):
        return await asyncio.gather(
            *(opened.get(f"k{n}") for n in range(40)), return_exceptions=True
        )

    found = asking(store, body)
    wrong = [n for n, each in enumerate(found) if isinstance(each, DataError)]
    assert wrong == [7, 31]
    assert store.closed == 1  # the connection is as good as before


def test_while_the_store_is_away_calls_fail_or_get_stale_rows_and_then_it_is_opened_anew():
    store = Store(ROWS)

    async def body(opened):
        assert (await opened.get("k1")).count == 1
        store.away = TransientError("gone", code="connector.away")
        kept = [await opened.get("k1") for _ in range(5)]
        assert [each.count for each in kept] == [1] * 5
        with pytest.raises(TransientError) as raised:
            await opened.get("k2")
        assert raised.value.code == "connector.away"
        store.away = None
        assert (await opened.get("k2")).count == 2

    asking(store, body, fresh="0s", stale="1h")
    # The first one, over a connection that may have been lost, is asked once more over a new one.
    # Others for which stale rows are kept are not asked while it was away a moment ago.
    assert store.asked == [["k1"], ["k1"], ["k1"], ["k2"], ["k2"]]
    assert store.closed == store.opened


def test_a_connection_that_was_lost_meanwhile_is_made_again_and_nobody_notices():
    store = Store(ROWS)

    async def body(opened):
        await opened.get("k1")
        fetch, store.fetch = store.fetch, None

        async def lost(keys):
            store.fetch = fetch
            raise TransientError("lost", code="connector.away")

        store.fetch = lost
        return await opened.get("k2")

    assert asking(store, body).count == 2
    assert (store.opened, store.closed) == (2, 2)


def test_a_store_that_does_not_answer_is_given_up_in_time_and_a_cancelled_call_harms_no_other():
    async def ask():
        store = Store(ROWS, gate=asyncio.Event())
        async with await lookup(store.connect, record=Small, timeout="50ms").open() as opened:
            with pytest.raises(TransientError, match="no answer within"):
                await opened.get("k1")
        store.waited.clear()
        async with await lookup(store.connect, record=Small).open() as opened:
            first = asyncio.create_task(opened.get("k1"))
            second = asyncio.create_task(opened.get("k1"))
            await store.waited.wait()
            first.cancel()
            store.gate.set()
            return await second

    assert asyncio.run(ask()).count == 1


@pytest.mark.parametrize(
    "key", [1.5, object(), "\ud800", "x" * 5_000, 10**40, ("a", "b"), [1], float("nan")]
)
def test_what_is_no_key_is_an_error_of_the_record_and_nobody_is_asked(key):
    store = Store({})

    async def body(opened):
        await opened.get(key)

    with pytest.raises(DataError):
        asking(store, body)
    assert store.asked == []


def test_no_key_has_no_row_and_keys_that_are_equal_in_python_are_told_apart():
    store = Store({1: {"id": "one"}})

    async def body(opened):
        return await opened.get(None), [await opened.get(key) for key in (1, True, 1)]

    asking(store, body)
    assert store.asked == [[1], [True]]


def test_a_row_that_is_no_record_is_an_error_of_whoever_asked_for_it():
    rows = {
        "bad": {"id": "bad", "count": "many"},
        "json": b'{"id":"json","count":3}',
        "odd": b"[",
        "text": {"id": "text", "count": "5", "more": object()},
        "own": Small("own", 2),
        "list": [1],
    }

    async def body(opened):
        return await asyncio.gather(*(opened.get(key) for key in rows), return_exceptions=True)

    bad, json, odd, text, own, several = asking(Store(rows), body)
    assert [each.count for each in (json, text, own)] == [3, 5, 2]
    assert all(isinstance(each, DataError) for each in (bad, odd, several))
    assert "a store" in bad.message


def test_a_store_that_raises_anything_or_gives_too_few_rows_hangs_nobody():
    store = Store(ROWS)

    async def body(opened):
        store.away = KeyError("mine")
        with pytest.raises(TransientError, match="KeyError"):
            await opened.get("k1")
        store.away = None
        store.fetch = lambda _: asyncio.sleep(0, [])
        with pytest.raises(ConfigurationError, match="0 rows for 1 keys"):
            await opened.get("k1")

    asking(store, body)


def test_wrong_options_are_told_together_where_the_look_up_is_made():
    with pytest.raises(DefinitionError) as raised:
        lookup(None, record=int, cache=-1, timeout="0s", stale="soon")
    assert len(raised.value.problems) == 5
    assert all(problem.place.file == __file__ for problem in raised.value.problems)


def test_a_service_that_is_copied_shares_the_definition():
    made = lookup(Store({}).connect, record=Small)
    assert copy.deepcopy({"rows": made})["rows"] is made
    assert asyncio.run(made.attempt()) == "it answers: Small from a store"
