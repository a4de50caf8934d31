"""What operators keep per key: in the store only what there is, in memory no trace of the rest."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.keyed.bag import Bag
from penstock.core.keyed.tablerows import TableRows
from penstock.core.keyed.wakes import Wakes
from penstock.core.panes.store import MemoryStore

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "flush", "restart"]),
        st.sampled_from([b"a", b"b"]),
        st.integers(0, 400),
    ),
    max_size=200,
)


@given(OPERATIONS)
def test_a_bag_holds_what_was_put_in_and_not_taken_out(operations):
    store = MemoryStore()
    bag, expected = Bag(store, tag=b"v"), {b"a": [], b"b": []}
    for what, key, value in operations:
        if what == "add":
            bag.add(key, value)
            expected[key].append(value)
        elif what == "remove":
            bag.remove(key, value)
            if value in expected[key]:
                expected[key].remove(value)
        else:
            bag.flush()
            if what == "restart":
                bag = Bag(store, tag=b"v")
        assert bag.first(key) == min(expected[key], default=None)
        assert bag.last(key) == max(expected[key], default=None)
    for key, values in expected.items():
        assert bag.values(key) == sorted(set(values))
        assert bag.all_of(key) == sorted(values)
        assert bag.largest(key, 3) == sorted(values)[::-1][:3]
        assert bag.size(key) == len(set(values))
        for value in values:
            bag.remove(key, value)
    bag.flush()
    assert not store


def test_a_large_bag_writes_one_small_page_for_each_change():
    store = MemoryStore()
    bag = Bag(store, tag=b"v")
    for value in range(10_000):
        bag.add(b"k", f"value {value}")
    bag.flush()
    assert max(map(len, store.values())) < 4_000
    before = dict(store)
    bag.add(b"k", "one more")
    bag.flush()
    assert len([name for name in store if store[name] != before.get(name)]) <= 2


def test_keys_that_have_no_row_leave_no_trace():
    store = MemoryStore()
    rows = TableRows(store, int, tag=b"k")
    for number in range(100):
        assert rows.row(b"%d" % number) is None
    rows.put(b"7", 1, 10)
    assert rows.row(b"7") == 1
    rows.put(b"7", None, 11)
    rows.flush()
    assert not store
    assert not rows._entries
    assert rows.row(b"7") is None


@given(
    st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(0, 3)), max_size=60),
    st.lists(st.integers(0, 6_000_000), max_size=10),
)
def test_what_waits_comes_in_order_and_at_least_once_over_restarts(entries, marks):
    store, done = MemoryStore(), []
    wakes = Wakes(store, tag=b"w")
    left = sorted(entries)
    for mark in sorted(marks):
        for moment, key in left[: len(left) // 2]:
            wakes.add(moment, b"%d" % key)
        left = left[len(left) // 2 :]
        came = wakes.due(mark)
        assert came == sorted(came)
        assert all(moment <= mark for moment, _ in came)
        done += came
        wakes.flush()
        kept = wakes.kept()
        wakes = Wakes(store, tag=b"w")
        wakes.begin(kept)
    for moment, key in left:
        wakes.add(moment, b"%d" % key)
    done += wakes.due(10_000_000)
    assert {(moment, int(key)) for moment, key in done} == set(entries)
    wakes.flush()
    assert not store
