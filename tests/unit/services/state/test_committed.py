"""What other threads read of a task is one commit, whatever the task does meanwhile."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.graph.state import CallScope, StateSpec
from penstock.core.instants import micros
from penstock.errors import TransientError
from penstock.services.state.committed import SCAN_CHUNK, Committed
from penstock.services.state.shelf import open_shelf
from penstock.services.state.states import States
from penstock.testing.clock import ManualClock

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("words", 0)
SPECS = (
    StateSpec("total", int),
    StateSpec("recent", int, kind="list"),
    StateSpec("pages", int, kind="map", key=str),
    StateSpec("brief", int, ttl=timedelta(seconds=10)),
)


class Bench:
    """The states of a task, in memory or on a disk, and what is committed of them."""

    def __init__(self, path=None):
        self.clock = ManualClock()
        self.shelf = None if path is None else open_shelf(path, identity="one")
        self.states = States(SPECS, changelog="changelog", clock=self.clock, shelf=self.shelf)
        self.here = CallScope()
        self.handles = self.states.handles(self.here)
        self.committed = Committed(self.states.readable, clock=self.clock, shelf=self.shelf)
        self.position = 0
        self.committed.settle({WORDS: 0}, lambda: None)

    def __getattr__(self, name):
        return self.handles[name]

    def at(self, key):
        self.here.key = key
        self.here.undo.clear()
        return self

    def commit(self):
        for _ in self.states.changes():
            pass
        self.position += 1
        self.committed.settle({WORDS: self.position}, self.states.settle)

    def close(self):
        self.committed.close()
        if self.shelf is not None:
            self.shelf.close()


@pytest.fixture(params=["memory", "disk"])
def bench(request, tmp_path):
    bench = Bench(tmp_path / "0" if request.param == "disk" else None)
    yield bench
    bench.close()


def test_writes_are_seen_once_they_are_committed(bench):
    bench.at(b"a").total.set(1)
    with bench.committed.cut() as cut:
        assert (cut.get("total", b"a"), cut.positions) == (None, {WORDS: 0})
    bench.commit()
    bench.at(b"a").total.set(2)
    with bench.committed.cut() as cut:
        assert (cut.get("total", b"a"), cut.positions) == (1, {WORDS: 1})


def test_a_cut_stays_what_it_was_over_later_writes_and_commits(bench):
    bench.at(b"a").total.set(1)
    bench.at(b"b").total.set(2)
    bench.commit()
    with bench.committed.cut() as cut:
        for number in range(3, 6):
            bench.at(b"a").total.set(number)
            bench.at(b"b").total.delete()
            bench.at(b"c%d" % number).total.set(number)
            assert [*cut.scan("total")] == [(b"a", 1), (b"b", 2)]
            bench.commit()
            assert [*cut.scan("total")] == [(b"a", 1), (b"b", 2)]
        assert (cut.get("total", b"b"), cut.get("total", b"c3", 0)) == (2, 0)
        with bench.committed.cut() as later:
            assert dict(later.scan("total")) == {b"a": 5, b"c3": 3, b"c4": 4, b"c5": 5}


def test_a_call_that_was_taken_back_is_not_seen(bench):
    bench.at(b"a").total.set(1)
    bench.commit()
    with bench.committed.cut() as cut:
        bench.at(b"a").total.set(9)
        bench.here.take_back()
        assert cut.get("total", b"a") == 1
        bench.commit()
        assert cut.get("total", b"a") == 1
    with bench.committed.cut() as cut:
        assert cut.get("total", b"a") == 1


def test_lists_and_maps_come_whole(bench):
    bench.at(b"a").recent.extend([1, 2])
    bench.at(b"a").pages.set("x", 1)
    bench.at(b"a").pages.set("y", 2)
    bench.at(b"aa").pages.set("z", 3)
    bench.commit()
    with bench.committed.cut() as cut:
        bench.at(b"a").recent.append(3)
        bench.at(b"a").pages.delete("x")
        bench.at(b"a").pages.set("w", 9)
        assert cut.get("recent", b"a") == [1, 2]
        assert cut.get("pages", b"a") == {"x": 1, "y": 2}
        assert [*cut.scan("pages")] == [(b"a", {"x": 1, "y": 2}), (b"aa", {"z": 3})]
        assert [*cut.scan("pages", prefix=b"aa")] == [(b"aa", {"z": 3})]
        assert cut.get("pages", b"none", "no") == "no"


def test_what_has_outlived_its_time_to_live_is_not_shown(bench):
    bench.at(b"a").brief.set(1)
    bench.commit()
    with bench.committed.cut() as cut:
        assert cut.get("brief", b"a") == 1
        bench.clock.advance("11s")
        assert cut.get("brief", b"a") is None
        assert [*cut.scan("brief")] == []
        bench.states.sweep(micros(bench.clock()))
        bench.commit()
        assert cut.get("brief", b"a") is None


def test_a_scan_keeps_to_its_range_and_its_prefix(bench):
    keys = [b"%04d" % number for number in range(3 * SCAN_CHUNK)]
    for key in keys:
        bench.at(key).total.set(int(key))
    bench.commit()
    with bench.committed.cut() as cut:
        assert [key for key, _ in cut.scan("total")] == keys
        assert [key for key, _ in cut.scan("total", prefix=b"01")] == keys[100:200]
        found = [key for key, _ in cut.scan("total", start=b"0300", end=b"0400")]
        assert found == keys[300:400]
        few = itertools.islice(cut.scan("total", start=b"0500"), 3)
        assert [*few] == [(b"0500", 500), (b"0501", 501), (b"0502", 502)]
        assert [*cut.scan("total", start=b"9")] == []


def test_a_scan_in_the_middle_holds_up_neither_commits_nor_other_cuts(bench):
    for number in range(2 * SCAN_CHUNK):
        bench.at(b"%04d" % number).total.set(1)
    bench.commit()
    with bench.committed.cut() as cut:
        scan = cut.scan("total")
        assert next(scan) == (b"0000", 1)
        for number in range(2 * SCAN_CHUNK):
            bench.at(b"%04d" % number).total.set(2)
        bench.commit()
        with bench.committed.cut() as other:
            assert other.get("total", b"0001") == 2
        assert {value for _, value in scan} == {1}


def test_a_task_that_moves_away_lets_its_cuts_go(bench):
    bench.at(b"a").total.set(1)
    bench.commit()
    cut = bench.committed.cut()
    scan = cut.scan("total")
    bench.close()
    for ask in (lambda: cut.get("total", b"a"), lambda: next(scan), bench.committed.cut):
        with pytest.raises(TransientError, match="does not run here"):
            ask()


def test_nothing_is_put_aside_where_nobody_reads():
    bench = Bench()
    bench.at(b"a").total.set(1)
    bench.commit()
    (cells,) = (cells for cells in bench.states.cells if cells.spec.name == "total")
    assert (cells.changed, cells.kept) == ({}, [])
    cut = bench.committed.cut()
    assert len(cells.kept) == 1
    cut.close()
    cut.close()
    assert cells.kept == []


def test_a_state_that_is_not_there_is_named(bench):
    with bench.committed.cut() as cut, pytest.raises(LookupError, match="total, recent, pages"):
        cut.get("totals", b"a")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "delete", "entry", "drop", "append", "commit", "cut"]),
        st.sampled_from([b"", b"a", b"ab", b"b", b"\x00", b"a\xff"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_every_cut_is_what_its_commit_left_in_memory_as_on_disk(  # noqa: C901, PLR0912 - one model
    tmp_path_factory, steps
):
    benches = [Bench(), Bench(tmp_path_factory.mktemp("cuts") / "0")]
    now, done = ({}, {}, {}), ({}, {}, {})
    cuts = []
    for step, key, number in steps:
        totals, maps, lists = now
        for bench in benches:
            bench.at(key)
            match step:
                case "set":
                    bench.total.set(number)
                case "delete":
                    bench.total.delete()
                case "entry":
                    bench.pages.set(f"{number}", number)
                case "drop":
                    bench.pages.delete(f"{number}")
                case "append":
                    bench.recent.append(number)
                case "commit":
                    bench.commit()
                case "cut":
                    cuts.append((bench.committed.cut(), done, bench.position))
        match step:
            case "set":
                totals[key] = number
            case "delete":
                totals.pop(key, None)
            case "entry":
                maps.setdefault(key, {})[f"{number}"] = number
            case "drop":
                maps.get(key, {}).pop(f"{number}", None)
            case "append":
                lists[key] = [*lists.get(key, []), number]
            case "commit":
                copied = {each: dict(entries) for each, entries in maps.items() if entries}
                done = (dict(totals), copied, dict(lists))
    for cut, (totals, maps, lists), position in cuts:
        assert cut.positions == {WORDS: position}
        assert [*cut.scan("total")] == sorted(totals.items())
        assert dict(cut.scan("pages")) == maps
        assert dict(cut.scan("recent")) == lists
        for key in (b"", b"a", b"none"):
            assert cut.get("total", key) == totals.get(key)
            assert cut.get("pages", key) == maps.get(key)
    for bench in benches:
        bench.close()
