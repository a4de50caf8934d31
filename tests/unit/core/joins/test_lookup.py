"""A stream with a table: the row on arrival, the row as of a time, records that wait."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.joinmachines import Run, app_of, arrival, shown, span

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["left", "row", "delete"]), st.sampled_from("ab"), st.integers(0, 40)
    ),
    max_size=30,
)
CUTS = st.lists(st.integers(-6, 6).filter(bool), max_size=8)


def joined(*, how="left", history=None, wait=None):
    app, time, row = app_of()
    left = app.stream("left", row, event_time=time)
    right = app.table("right", row, history=None if history is None else span(history))
    return left.join(right, on="key", how=how, wait=None if wait is None else span(wait))


def arrivals(events):
    found = []
    for number, (what, key, at) in enumerate(events):
        value = None if what == "delete" else number
        found.append(arrival(int(what != "left"), key, at, value, offset=number))
    return found


def as_of(versions, time):
    """Return the row that held at a time; of equal times the later arrival counts."""
    known = [each for each in versions if each.time <= time]
    latest = max(known, key=lambda each: (each.time, each.offset), default=None)
    return None if latest is None or latest.record is None else latest.record.value


@given(EVENTS, CUTS)
def test_without_versions_a_record_finds_the_row_that_arrived_last(events, cuts):
    came = arrivals(events)
    rows, expected = {}, []
    for each in came:
        if each.input:
            rows[each.key] = each.record
        else:
            row = rows.get(each.key)
            expected.append((each.record.value, None if row is None else row.value))
    run = Run(joined())
    run.take_cut(came, cuts)
    found = [shown(each.record)[:2] for each in run.given.results]
    assert [(left[1], right and right[1]) for left, right in found] == expected


@given(EVENTS, CUTS)
def test_with_versions_a_record_finds_the_row_that_held_at_its_time(events, cuts):
    came = arrivals(events)
    run = Run(joined(history=1000))
    run.take_cut(came, cuts)
    found = [shown(each.record)[:2] for each in run.given.results]
    expected = []
    for number, each in enumerate(came):
        if not each.input:
            rows = [row for row in came[:number] if row.input and row.key == each.key]
            expected.append((each.record.value, as_of(rows, each.time)))
    assert [(left[1], right and right[1]) for left, right in found] == expected


@given(EVENTS, CUTS, st.integers(0, 10))
def test_a_record_that_waits_sees_what_came_in_the_meantime(events, cuts, wait):
    came = arrivals(events)
    run = Run(joined(history=1000, wait=wait))
    run.take_cut(came, cuts)
    run.finish()
    expected = Counter()
    for number, each in enumerate(came):
        if each.input:
            continue
        # It looks when a record of the stream shows that event time is so far, before that joins.
        behind = [n for n, other in enumerate(came) if n >= number and not other.input]
        looks = next((n for n in behind if came[n].time >= each.time + wait * 1000), len(came))
        before = [came[n].time for n in range(number) if not came[n].input]
        if max(before, default=-1) >= each.time + wait * 1000:
            looks = number
        rows = [row for row in came[:looks] if row.input and row.key == each.key]
        expected[each.record.value, as_of(rows, each.time)] += 1
    found = [shown(each.record)[:2] for each in run.given.results]
    assert Counter((left[1], right and right[1]) for left, right in found) == expected


def test_versions_are_forgotten_when_the_history_is_over_and_deleted_rows_are_gone():
    run = Run(joined(history=10))
    run.take([arrival(1, "a", at, at) for at in range(0, 100, 5)])
    run.take([arrival(0, "a", 100, 0), arrival(1, "a", 101, None), arrival(0, "a", 200, 0)])
    run.machine.flush()
    assert set(run.store) == {b"h"}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_record_that_waits_finds_its_row_however_far_event_time_jumps(restarts):
    run = Run(joined(history=10, wait=5))
    run.take([arrival(1, "a", 0, 100), arrival(0, "a", 1, 1), arrival(1, "a", 2, 101)])
    if restarts:
        run.machine.flush()
        run.restart()
    run.take([arrival(1, "a", 3, 102), arrival(0, "a", 500, 2)])
    run.finish()
    found = [shown(each.record)[:2] for each in run.given.results]
    assert [(left[1], right and right[1]) for left, right in found] == [(1, 100), (2, 102)]


def test_a_record_that_waits_finds_its_row_where_event_time_is_told():
    run = Run(joined(history=10, wait=5))
    run.take([arrival(1, "a", 0, 100), arrival(0, "a", 1, 1), arrival(1, "a", 2, 101)])
    given = run.machine.advance(clock=0, event_time=500_000)
    found = [shown(each.record)[:2] for each in given.results]
    assert [(left[1], right and right[1]) for left, right in found] == [(1, 100)]


def test_a_record_that_is_older_than_the_history_finds_no_row_while_others_wait():
    run = Run(joined(history=10, wait=5))
    run.take([arrival(1, "a", 0, 100), arrival(1, "a", 100, 101), arrival(0, "b", 95, 1)])
    run.take([arrival(0, "b", 99, 2), arrival(0, "a", 80, 3)])
    found = [shown(each.record)[:2] for each in run.given.results]
    assert [(left[1], right and right[1]) for left, right in found] == [(3, 100)]


@given(EVENTS, st.sampled_from([None, 0, 3]))
def test_a_finished_range_gives_what_the_stream_gave(events, wait):
    came = arrivals(events)
    stream = Run(joined(history=1000, wait=wait))
    stream.take(came)
    stream.finish()
    whole = Run(joined(history=1000, wait=wait))
    whole.plan = whole.plan.finished()
    whole.restart()
    whole.take(came)
    whole.finish()
    assert whole.standing() == stream.standing()
