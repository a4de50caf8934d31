"""What a machine keeps: records that are too large for a broker lie in parts on the changelog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.services.state import machine as module
from penstock.services.state.machine import PART_BYTES, MachineState
from penstock.services.state.shelf import open_shelf

SIZES = [0, 1, 9, 10, 11, 20, 35, 100]
MOVES = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"ab", b"b\x00"]),
        st.sampled_from([None, *SIZES]),
        st.sampled_from(["", "", "commit", "restart"]),
    ),
    max_size=25,
)


def committed(state, log):
    """Commit; return what was written."""
    changes = list(state.changes())
    state.settle()
    log += changes
    return changes


def restored(log, shelf=None):
    state = MachineState(shelf)
    if not state.resume():
        for key, value in log:
            state.apply(key, value)
    state.restored({"log": len(log)})
    return state


@pytest.mark.parametrize("disk", [False, True])
def test_large_records_are_what_they_were_over_commits_and_restarts(disk, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_BYTES", 10)
    number = 0

    @given(MOVES)
    def play(moves):
        nonlocal number
        number += 1
        shelf = open_shelf(tmp_path / str(number), identity="") if disk else None
        state, log, kept, wanted = restored([], shelf), [], {}, {}
        for key, size, then in moves:
            if size is None:
                state.delete(key)
                wanted.pop(key, None)
            else:
                wanted[key] = bytes(range(size))
                state.put(key, wanted[key])
            if then == "commit":
                committed(state, log)
                kept = dict(wanted)
            elif then == "restart":  # what was not committed is gone
                if disk:
                    shelf.close()
                    shelf = open_shelf(tmp_path / str(number), identity="")
                state, wanted = restored(log, shelf), dict(kept)
            for each in (b"a", b"ab", b"b\x00"):
                assert state.get(each) == wanted.get(each)
        committed(state, log)
        if disk:
            shelf.close()
        latest = dict(log)
        assert all(len(value or b"") <= 10 for value in latest.values())
        found = restored(latest.items())
        assert {each: found.get(each) for each in wanted} == wanted
        held = [key for key, value in latest.items() if value is not None]
        parts = sum(max(0, -(-len(value) // 10)) for value in wanted.values() if len(value) > 10)
        assert len(held) == len(wanted) + parts, "no part outlives its record"

    play()


def test_of_a_large_record_only_the_parts_that_changed_are_written():
    state, log = MachineState(), []
    large = bytearray(b"x" * (4 * PART_BYTES + 1))
    state.put(b"k", bytes(large))
    assert len(committed(state, log)) == 6
    large[-1:] = b"yz"
    state.put(b"k", bytes(large))
    written = committed(state, log)
    assert sum(len(value) for _, value in written) < 10
    assert restored(log).get(b"k") == large
