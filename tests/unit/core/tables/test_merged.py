"""Combiners that cannot subtract: what a change costs does not grow with the group."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.keyed.bag import Bag
from penstock.core.panes.store import MemoryStore
from penstock.core.tables.merged import merged


class Longest:
    """The longest text; counts what it is asked for."""

    def __init__(self):
        self.calls = 0

    def zero(self):
        return [0]

    def add(self, held, value):
        self.calls += 1
        held[0] = max(held[0], len(value))
        return held

    def merge(self, held, other):
        self.calls += 1
        held[0] = max(held[0], other[0])
        return held

    def result(self, held):
        return held[0]


class Total(Longest):
    """How often values are there."""

    def add(self, held, _value):
        self.calls += 1
        held[0] += 1
        return held

    def merge(self, held, other):
        self.calls += 1
        held[0] += other[0]
        return held


def test_a_change_computes_one_page_of_a_large_group():
    bag, combiner = Bag(MemoryStore(), tag=b"v"), Longest()
    for number in range(20_000):
        bag.add(b"k", f"value {number}")
    bag.flush()
    assert merged(combiner, bag, b"k") == 11
    for value, expected in (("a much longer value", 19), ("short", 19)):
        combiner.calls = 0
        bag.add(b"k", value)
        assert merged(combiner, bag, b"k") == expected
        assert combiner.calls < 300
    bag.remove(b"k", "a much longer value")
    assert merged(combiner, bag, b"k") == 11


def test_a_value_that_is_there_very_often_is_not_added_as_often():
    bag, combiner = Bag(MemoryStore(), tag=b"v"), Total()
    for _ in range(10_001):
        bag.add(b"k", "again")
    assert merged(combiner, bag, b"k") == 10_001
    assert combiner.calls < 50


@given(
    st.lists(st.tuples(st.sampled_from(["add", "remove", "flush", "ask"]), st.integers(0, 300))),
    st.integers(0, 200),
)
def test_what_is_merged_is_what_is_there(operations, many):
    store = MemoryStore()
    bag, expected = Bag(store, tag=b"v"), []
    for number in range(many):
        bag.add(b"k", number)
        expected.append(number)
    for what, value in operations:
        if what == "add":
            bag.add(b"k", value)
            expected.append(value)
        elif what == "remove":
            bag.remove(b"k", value)
            if value in expected:
                expected.remove(value)
        elif what == "flush":
            bag.flush()
        else:
            assert merged(Total(), bag, b"k") == len(expected)
    bag.flush()
    assert merged(Total(), Bag(store, tag=b"v"), b"k") == len(expected)
