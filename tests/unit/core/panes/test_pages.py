from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.pages import KEYS_ON_A_PAGE, PagedStore


class Records(dict):
    """A store in memory that counts the calls it gets."""

    calls = 0

    def get(self, key):
        self.calls += 1
        return super().get(key)

    def put(self, key, value):
        self.calls += 1
        self[key] = value

    def delete(self, key):
        self.calls += 1
        self.pop(key, None)


def key(number):
    return b"k%d" % number


steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "flush"]), st.integers(0, 30), st.binary()),
    max_size=60,
)


@given(steps)
def test_it_holds_what_a_plain_store_holds(steps):
    inner, plain = Records(), {}
    store = PagedStore(inner, keys_on_a_page=2)
    for what, number, value in steps:
        if what == "put":
            store.put(key(number), value)
            plain[key(number)] = value
        elif what == "delete":
            store.delete(key(number))
            plain.pop(key(number), None)
        else:
            store.flush()
            store = PagedStore(inner, keys_on_a_page=2)
    store.flush()
    again = PagedStore(inner, keys_on_a_page=2)
    found = {key(number): again.get(key(number)) for number in range(31)}
    assert {name: value for name, value in found.items() if value is not None} == plain


def test_many_keys_cost_few_calls():
    inner = Records()
    store = PagedStore(inner)
    for number in range(10_000):
        store.put(key(number), b"value")
    store.flush()
    inner.calls = 0
    store = PagedStore(inner)
    for number in range(10_000):
        assert store.get(key(number)) == b"value"
        store.put(key(number), b"other")
    store.flush()
    assert inner.calls < 4 * 10_000 / KEYS_ON_A_PAGE + 10


def test_what_is_no_key_is_kept_as_it_is():
    inner = Records()
    store = PagedStore(inner)
    store.put(b"h", b"head")
    assert inner[b"h"] == store.get(b"h") == b"head"
    store.delete(b"h")
    assert b"h" not in inner


def test_one_more_page_takes_keys_of_one_other_and_reads_no_third():
    inner = Records()
    store = PagedStore(inner, keys_on_a_page=10)
    for number in range(2_000):
        store.put(key(number), b"value")
    store.flush()
    before, most = 2_000, 0
    for number in range(2_000, 2_200):
        inner.calls = 0
        store = PagedStore(inner, keys_on_a_page=10)
        store.put(key(number), b"value")
        store.flush()
        most = max(most, inner.calls)
        before += 1
    assert before == sum(len(decode(inner[name])) for name in inner if name != b"p")
    assert most <= 8  # meta, the key's page and the one that is split, read and written, a new one


def test_pages_of_a_store_that_was_doubled_as_a_whole_are_read_on():
    inner, keys = Records(), [key(number) for number in range(100)]
    pages = {}
    for each in keys:
        pages.setdefault((crc32(each) >> 8) & 7, {})[each] = b"value"
    for number, page in pages.items():
        inner.put(b"p%d" % number, encode(page))
    inner.put(b"p", encode((3, len(keys))))
    store = PagedStore(inner, keys_on_a_page=10)
    store.put(b"k100", b"value")
    store.flush()
    again = PagedStore(inner, keys_on_a_page=10)
    assert all(again.get(each) == b"value" for each in [*keys, b"k100"])


def test_keys_of_one_page_have_one_place():
    inner = Records()
    store = PagedStore(inner, keys_on_a_page=4)
    for number in range(100):
        store.put(key(number), b"value")
    store.flush()
    ordered = sorted((b"%d" % number for number in range(100)), key=store.place)
    inner.calls = 0
    for each in ordered:
        store.get(b"k" + each)
        places = len({store.place(each) for each in ordered})
    assert inner.calls == places
