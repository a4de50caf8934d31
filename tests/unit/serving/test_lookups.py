"""Pages of rows: merged over tasks, and kept in order while a table changes."""

from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from penstock.core.asking.questions import (
    Get,
    Refused,
    Rows,
    Scan,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)
from penstock.core.asking.where import address_in, client_name
from penstock.core.settings.settings import ServingSettings
from penstock.serving.http.asked import mark_of, read_range
from penstock.serving.lookups.routes import merged
from penstock.serving.tables.view import TableView

KEYS = st.binary(min_size=1, max_size=3)


def test_questions_and_answers_are_the_same_on_the_other_side():
    asked = {"service": "s", "task": 1, "state": "t", "at_least": {"topic": {0: 5}}}
    for question in (Get(key=b"\xff", **asked), Scan(prefix=b"a", end=None, **asked)):
        assert decode_question(encode_question(question)) == question
    rows = Rows(rows=[(b"k", b"[1]")], positions={"topic": {0: 6}}, stale_seconds=None, more=True)
    for answer in (rows, Refused(code="state.moved", text="gone")):
        assert decode_answer(encode_answer(answer)) == answer


def test_the_name_of_a_client_says_where_its_process_answers():
    for host, port in (("127.0.0.1", 5), ("::1", 65535), ("worker.example", 80)):
        found = address_in(client_name(host, port))
        assert found is not None
        assert found.strip("[").replace("]", "") == f"{host}:{port}"
    for other in ("penstock", "rdkafka", "penstock@", "penstock@:1", "penstock@host:x"):
        assert address_in(other) is None


@given(st.lists(st.dictionaries(KEYS, st.just(b"1"), max_size=8), max_size=4), st.integers(1, 5))
def test_pages_over_several_tasks_give_every_key_once_and_in_order(tasks, limit):
    distinct = {key: at for at, rows in enumerate(tasks) for key in rows}
    held = [sorted(key for key in distinct if distinct[key] == at) for at in range(len(tasks))]
    found, start = [], b""
    while True:
        pages = []
        for keys in held:
            behind = [key for key in keys if key >= start]
            rows = [(key, b"1") for key in behind[:limit]]
            pages.append(Rows(rows=rows, positions={}, stale_seconds=0.0, more=len(behind) > limit))
        rows, last = merged(pages, rows=limit, size=1 << 20)
        found += [key for key, _ in rows]
        if last is None:
            break
        start = last + b"\x00"
    assert found == sorted(distinct)


@given(st.binary(max_size=6) | st.sampled_from([b"base64:", b"base64:YQ==", "ä".encode()]))
def test_whatever_a_key_is_the_next_page_goes_on_behind_it(key):
    query = urlencode({"after": mark_of(key)})
    request = Request({"type": "http", "query_string": query.encode(), "headers": []})
    assert read_range(request, ServingSettings()).start == key + b"\x00"


def test_a_page_ends_where_it_would_be_too_large():
    page = Rows(rows=[(b"a", b"x" * 10), (b"b", b"x" * 10)], positions={}, stale_seconds=0.0)
    assert merged([page], rows=10, size=15) == ([(b"a", b"x" * 10)], b"a")


@given(st.lists(st.tuples(KEYS, st.sampled_from([b"1", b"2", None]), st.booleans()), max_size=40))
def test_a_table_that_changes_gives_what_a_dictionary_would(changes):
    view, wanted = TableView(None, "topic", most_bytes=1 << 20), {}
    for key, value, look in changes:
        view._put(key, value)
        view._tidy()
        wanted.pop(key, None)
        if value is not None:
            wanted[key] = value
        if look:
            page = view.page(prefix=b"", start=b"", end=None, rows=100, size=1 << 20)
            assert page.rows == sorted(wanted.items())
    some = view.page(prefix=b"", start=b"b", end=b"y", rows=2, size=1 << 20)
    inside = sorted(item for item in wanted.items() if b"b" <= item[0] < b"y")
    assert (some.rows, some.more) == (inside[:2], len(inside) > 2)
    assert view._size == sum(len(key) + len(value) + 200 for key, value in wanted.items())
