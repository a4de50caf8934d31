"""The rows of a table on the driver's disk: what is found is what a dict would have."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipelines.lookups import store as stores
from penstock.pipelines.lookups.hashes import hashes, spans
from penstock.pipelines.lookups.segment import GONE, KEY
from penstock.pipelines.lookups.store import LookupStore

FIELDS = pa.schema([("name", pa.string()), ("city", pa.string()), ("size", pa.int64())])

Change = tuple[str, str | None, int]


def rows(changes: list[Change]) -> pa.RecordBatch:
    """Return changes as a follower gives them; without a city the row is gone."""
    gone = [city is None for _, city, _ in changes]
    return pa.RecordBatch.from_pydict(
        {
            KEY: pa.array([name.encode() for name, _, _ in changes], pa.binary()),
            GONE: pa.array(gone, pa.bool_()),
            "name": pa.array(
                [None if city is None else name for name, city, _ in changes], pa.string()
            ),
            "city": pa.array([city for _, city, _ in changes], pa.string()),
            "size": pa.array(
                [None if city is None else size for _, city, size in changes], pa.int64()
            ),
        }
    )


def found(store: LookupStore, column: str, values: list) -> set[tuple]:
    asked = pa.array(values, FIELDS.field(column).type)
    table = store.find((column,), [asked])
    assert table.schema.names == FIELDS.names
    return {tuple(row.values()) for row in table.to_pylist()}


names = st.sampled_from("abcdefgh")
changes = st.lists(
    st.tuples(names, st.none() | st.sampled_from(("Rome", "Oslo", "")), st.integers(0, 3))
)


@given(st.lists(changes, max_size=25), st.lists(names), st.sampled_from((0, 1, 1 << 30)))
def test_what_is_found_is_the_last_row_of_each_key(tmp_path_factory, batches, asked, memory):
    store = LookupStore(tmp_path_factory.mktemp("table"), FIELDS, memory_bytes=memory)
    table: dict[str, tuple] = {}
    for batch in batches:
        store.put(rows(batch))
        for name, city, size in batch:
            table.pop(name, None)
            if city is not None:
                table[name] = (name, city, size)
    assert store.segments <= stores.MAX_SEGMENTS
    assert found(store, "name", asked) == {table[each] for each in asked if each in table}
    by_city = {row for row in table.values() if row[1] == "Rome"}
    assert found(store, "city", ["Rome", "Bonn"]) == by_city
    two = store.find(("city", "size"), [pa.array(["Oslo"]), pa.array([2])])
    assert {tuple(row.values()) for row in two.to_pylist()} == {
        row for row in table.values() if row[1:] == ("Oslo", 2)
    }


def test_segments_are_merged_up_to_a_size_and_files_of_merged_ones_are_removed(tmp_path):
    store = LookupStore(tmp_path, FIELDS, memory_bytes=0, segment_bytes=20_000)
    for number in range(60):
        store.put(rows([(f"{number}.{each}", "Rome", each) for each in range(20)]))
    assert len(list(tmp_path.iterdir())) == store.segments
    assert len(found(store, "size", [3])) == 60
    store.put(rows([("1.3", None, 0)]))
    assert len(found(store, "size", [3])) == 59
    store.clear()
    assert not list(tmp_path.iterdir())
    assert found(store, "size", [3]) == set()


def test_keys_that_share_a_hash_do_not_replace_each_other(tmp_path, monkeypatch):
    def poor(columns):
        return np.array([len(str(each)) % 2 for each in columns[0].to_pylist()], np.uint64)

    for module in ("segment", "store"):
        monkeypatch.setattr(f"penstock.pipelines.lookups.{module}.hashes", poor)
    store = LookupStore(tmp_path, FIELDS)
    store.put(rows([("a", "Rome", 1), ("b", "Rome", 2), ("c", "Oslo", 3)]))
    store.put(rows([("b", "Bonn", 4), ("c", None, 0)]))
    assert found(store, "name", ["a"]) == {("a", "Rome", 1), ("b", "Bonn", 4)}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["", "a", "Zürich", "a\0"], pa.string()),
        ([b"", b"a", b"\xff"], pa.binary()),
        ([0, -1, 2**63 - 1], pa.int64()),
        ([True, False], pa.bool_()),
        ([date(1, 1, 1), date(2026, 1, 1)], pa.date32()),
        (
            [datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
        ),
        ([Decimal("1.5"), Decimal("-1.5"), Decimal(0)], pa.decimal128(38, 18)),
    ],
)
def test_equal_values_have_equal_hashes_and_others_have_others(values, kind):
    once, again = hashes([pa.array(values, kind)]), hashes([pa.array(values[::-1], kind)])
    assert list(once) == list(again)[::-1]
    assert len(set(once)) == len(values)
    assert len(hashes([pa.array([None], kind)])) == 1


def test_spans_are_all_pairs_of_equal_numbers():
    ordered = np.array([1, 1, 2, 5, 5, 5], np.uint64)
    asked, places = spans(ordered, np.array([5, 0, 1], np.uint64))
    assert list(zip(asked.tolist(), places.tolist(), strict=True)) == [
        *((0, each) for each in (3, 4, 5)),
        *((2, each) for each in (0, 1)),
    ]
