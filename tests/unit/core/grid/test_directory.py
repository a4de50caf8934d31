from hypothesis import given
from hypothesis import strategies as st

from penstock.core.grid.directory import Directory
from penstock.core.panes.store import MemoryStore

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "flush", "restart", "clear"]),
        st.integers(0, 300),
    ),
    max_size=60,
)


@given(STEPS)
def test_a_directory_holds_what_a_dict_holds_also_after_a_restart(steps):
    store, model = MemoryStore(), {}
    other = Directory(store, b"other")
    other.put(b"1", b"stays")
    directory = Directory(store, b"d")
    for what, number in steps:
        key = b"%d" % number
        if what == "put":
            directory.put(key, b"value %d" % number)
            model[key] = b"value %d" % number
        elif what == "delete":
            directory.delete(key)
            model.pop(key, None)
        elif what == "clear":
            directory.clear()
            model.clear()
        else:
            directory.flush()
            if what == "restart":
                directory = Directory(store, b"d")
        assert len(directory) == len(model)
    assert dict(directory.items()) == model
    assert other.get(b"1") == b"stays"


def test_what_a_change_writes_does_not_grow_with_the_directory():
    store = MemoryStore()
    directory = Directory(store, b"d")
    for number in range(10_000):
        directory.put(b"%d" % number, b"value")
    directory.flush()
    before = dict(store)
    directory.put(b"one more", b"value")
    directory.flush()
    changed = {key: value for key, value in store.items() if before.get(key) != value}
    assert sum(map(len, changed.values())) < 5_000
    assert len(Directory(store, b"d")) == 10_001


def test_a_cleared_directory_leaves_nothing_in_the_store():
    store = MemoryStore()
    directory = Directory(store, b"d")
    for number in range(1_000):
        directory.put(b"%d" % number, b"value")
    directory.flush()
    directory.clear()
    assert store == {}
