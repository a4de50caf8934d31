"""Keys that wait for moments, however many they are and wherever in time."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.panes.packing import decode
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.waiting import CHUNK_KEYS, SLOT, Waiting

SECOND = SLOT
moments = st.integers(-20, 20).map(lambda half: half * SECOND // 2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), moments, st.integers(0, 99)),
        st.tuples(st.just("due"), moments),
        st.tuples(st.just("flush")),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


def all_due(found, moment):
    keys = []
    while more := found.due(moment):
        keys += more
    assert not found.is_due(moment)
    return keys


@settings(max_examples=3 * settings().max_examples)
@given(steps)
def test_each_key_is_due_once_for_each_moment_it_waits_for(steps):
    store, plain = MemoryStore(), []
    found = Waiting("w", store)
    for name, *given_ in steps:
        match name:
            case "add":
                found.add(given_[0], b"%d" % given_[1])
                plain.append((given_[0], b"%d" % given_[1]))
            case "due":
                due = sorted(key for moment, key in plain if moment <= given_[0])
                plain = [row for row in plain if row[0] > given_[0]]
                assert sorted(all_due(found, given_[0])) == due
            case "flush":
                found.flush()
            case "restart":
                found.flush()
                slots = found.slots()
                found = Waiting("w", store)
                found.load(slots)
        assert found.first == min((moment for moment, _ in plain), default=None)
    assert sorted(all_due(found, 1 << 60)) == sorted(key for _, key in plain)


def test_however_many_wait_for_one_moment_they_come_in_chunks_of_a_bounded_size():
    store = MemoryStore()
    found = Waiting("w", store)
    for number in range(5 * CHUNK_KEYS):
        found.add(SECOND, b"%d" % number)
    found.flush()
    assert len(store) == 5
    sizes = []
    while keys := found.due(SECOND):
        sizes.append(len(keys))
        assert len(store) == 5 - len(sizes)
    assert sizes == [CHUNK_KEYS] * 5


def test_however_far_apart_moments_are_the_number_of_slots_is_bounded():
    chance = random.Random(1)
    found = Waiting("w", MemoryStore())
    plain = [(chance.randrange(10**17), b"%d" % number) for number in range(20_000)]
    for moment, key in plain:
        found.add(moment, key)
    found.flush()
    assert len(found.slots()) < 4096
    for moment in sorted(chance.sample([moment for moment, _ in plain], 20)):
        due = sorted(key for waits_for, key in plain if waits_for <= moment)
        plain = [row for row in plain if row[0] > moment]
        assert sorted(all_due(found, moment)) == due


class CountingStore(MemoryStore):
    """A store that counts the rows that are read from it."""

    def __init__(self):
        super().__init__()
        self.rows_read = 0

    def get(self, key):
        found = super().get(key)
        self.rows_read += len(decode(found))
        return found


def test_a_key_that_waits_for_hours_is_not_read_each_time_that_time_moves_on():
    chance, store = random.Random(1), CountingStore()
    found = Waiting("w", store)
    added = 0
    for now in range(14_000):
        for moment in (now + 7_200, now + 7_200 + 100 * chance.random()):
            found.add(int(moment * SECOND), b"%d" % added)
            added += 1
        all_due(found, now * SECOND)
        found.flush()
        assert len(found.slots()) < 4096
    assert store.rows_read < 8 * added


def test_keys_that_wait_on_are_not_read_again_for_each_slice_of_those_that_are_due():
    chance, store = random.Random(1), CountingStore()
    found = Waiting("w", store)
    for number in range(100 * 100):
        found.add(chance.randrange(SECOND), b"%d" % number)
        if number % 100 == 0:
            found.flush()
    found.flush()
    while found.due(SECOND // 2):
        found.flush()
    assert store.rows_read <= 100 * 100


def test_letting_a_key_wait_costs_the_same_however_many_wait_already():
    found = Waiting("w", MemoryStore())
    compared = 0

    class Key(bytes):
        """A key that tells when it is compared: sorting would be that."""

        __slots__ = ()

        def __lt__(self, other):
            nonlocal compared
            compared += 1
            return bytes.__lt__(self, other)

    for number in range(10_000):
        found.add(SECOND, Key(b"%d" % (number * 7919 % 10_007)))
    assert compared == 0
