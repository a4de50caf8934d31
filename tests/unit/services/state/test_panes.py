"""The records of a bucket as state: the same in memory and on a shelf, over crashes."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.aggregates.collect import Collect
from penstock.core.panes.arrivals import Arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.machine import PaneMachine, Windowing
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.panes.windows import FixedWindows
from penstock.services.state import machine as machinestate
from penstock.services.state.panes import PaneState
from penstock.services.state.shelf import open_shelf


class Log:
    """A changelog, and the state that is restored from it as a task does it."""

    def __init__(self, path=None):
        self.records = []
        self._path = path
        self.shelf = self.state = None
        self.crash()

    def crash(self):
        """Lose what is not committed; begin again with the shelf and the rest of the log."""
        self.close()
        if self._path is not None:
            self.shelf = open_shelf(self._path, identity="one")
        self.state = PaneState(self.shelf)
        start = self.state.resume().get("changelog", 0)
        for key, value in self.records[start:]:
            self.state.apply(key, value)
        self.state.restored({"changelog": len(self.records)})

    def commit(self, *, note=True):
        """Commit; the shelf hears its place, unless it is to lag behind."""
        if note:
            self.state.snapshot({"changelog": len(self.records)})
        self.records += self.state.changes()
        self.state.settle()

    def close(self):
        if self.shelf is not None:
            self.shelf.close()


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=3)),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("commit"), st.booleans()),
        st.tuples(st.just("crash")),
    ),
    max_size=25,
)


@pytest.mark.parametrize("on_disk", [False, True])
@settings(max_examples=settings().max_examples // 2)
@given(steps=STEPS)
def test_it_holds_what_was_written_and_after_a_crash_what_was_committed(on_disk, steps):
    with tempfile.TemporaryDirectory() as directory:
        log = Log(Path(directory) / "0" if on_disk else None)
        now, committed = {}, {}
        for name, *given_ in steps:
            match name:
                case "put":
                    log.state.put(*given_)
                    now[given_[0]] = given_[1]
                case "delete":
                    log.state.delete(*given_)
                    now.pop(given_[0], None)
                case "commit":
                    log.commit(note=given_[0])
                    committed = dict(now)
                case "crash":
                    log.crash()
                    now = dict(committed)
            assert {key: log.state.get(key) for key in (b"a", b"b", b"c", b"d")} == {
                key: now.get(key) for key in (b"a", b"b", b"c", b"d")
            }
        log.close()


def test_what_is_not_committed_yet_stays_when_the_shelf_hears_its_place(tmp_path):
    log = Log(tmp_path / "0")
    log.state.put(b"d", b"declaration")
    log.state.restored({"changelog": 0})
    assert log.state.get(b"d") == b"declaration"
    log.commit()
    assert log.records == [(b"panes\x00d", b"declaration")]
    log.close()


def test_a_bounded_number_of_keys_is_in_memory_and_the_panes_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(machinestate, "KEPT_KEYS", 10)
    log = Log(tmp_path / "0")
    bucket = log.state.machine = made(log.state)
    plain = made(MemoryStore())
    panes = []
    for moment in range(40):
        came = [arrivals(moment)]
        given_, expected = bucket.take(came), plain.take([arrivals(moment)])
        assert (given_.panes, given_.late) == (expected.panes, expected.late)
        panes += given_.panes
        log.commit()
        assert len(bucket._entries) <= 10
        if moment % 7 == 0:
            log.crash()
            bucket = log.state.machine = made(log.state)
    assert len(panes) > 1000
    log.close()


def made(store):
    return Bucket(
        PaneMachine(Windowing(windows=FixedWindows(10)), Collect()),
        WatermarkRule(disorder=5),
        store,
    )


def arrivals(moment):
    """Return what comes in one moment: an element of each of 60 keys."""
    time = moment * 7
    elements = {b"%d" % key: [(time, key, ("0", moment))] for key in range(60)}
    return Arrivals(clock=moment, source="0", elements=elements, newest=time)
