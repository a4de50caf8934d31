"""Each record once: the same however it is cut into moments, restarted, or trimmed."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore

T0 = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
START = int(T0.timestamp()) * 1_000_000


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    number: int


def made(store, *, within="10m", disorder="5m"):
    app = App("plant")
    readings = app.stream("readings", Reading, event_time=EventTime(disorder=disorder))
    plan = readings.deduplicate(by="number", within=within).plan()
    return plan.machine(store, readings.record, broadcasts={})


def arrival(number, minute, *, device="a", offset=0):
    found = Reading(device, T0 + timedelta(minutes=minute), number)
    time = START + minute * MINUTE
    return Arrival(0, device.encode(), found, time, "0", offset)


def told(given):
    return (
        [result.record for result in given.results],
        [(late.arrival.offset, late.reason) for late in given.late],
        given.dropped,
    )


def played(arrivals, cuts=(), *, restarts=False):
    store = MemoryStore()
    machine = made(store)
    results, late, dropped = [], [], 0
    edges = [0, *sorted(cuts), len(arrivals)]
    for start, end in pairwise(edges):
        found = told(machine.take(arrivals[start:end], clock=START))
        results, late, dropped = results + found[0], late + found[1], dropped + found[2]
        if restarts:
            machine.flush()
            machine.trim(0)
            machine = made(MemoryStore(store))
            store = machine._store
    machine.flush()
    return (results, late, dropped), store


def test_a_record_that_came_within_the_span_is_left_out_whichever_came_first():
    arrivals = [arrival(1, 20), arrival(1, 30), arrival(1, 16), arrival(1, 31), arrival(2, 31)]
    results, late, dropped = played(arrivals)[0]
    assert [(each.number, each.at.minute) for each in results] == [(1, 20), (1, 31), (2, 31)]
    assert (late, dropped) == ([], 2)


def test_a_record_too_far_behind_to_tell_whether_it_came_before_is_late():
    arrivals = [arrival(1, 100, offset=1), arrival(2, 85, offset=2), arrival(3, 84, offset=3)]
    results, late, _ = played(arrivals)[0]
    assert [each.number for each in results] == [1, 2]
    assert late == [(3, "expired")]


def test_what_can_matter_no_more_is_forgotten():
    arrivals = [arrival(number, number) for number in range(500)]
    _, store = played(arrivals)
    kept = [key for key in store if key.startswith(b"k")]
    assert 20 <= len(kept) <= 30


def test_other_keys_are_others():
    results, _, _ = played([arrival(1, 1), arrival(1, 1, device="b")])[0]
    assert len(results) == 2


ARRIVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 90)), max_size=40)


@given(ARRIVALS, st.lists(st.integers(0, 40), max_size=6), st.booleans())
def test_the_results_do_not_depend_on_moments_or_restarts(drawn, cuts, restarts):
    arrivals = [arrival(number, at, offset=n) for n, (number, at) in enumerate(drawn)]
    cuts = [cut for cut in cuts if cut <= len(arrivals)]
    assert played(arrivals, cuts, restarts=restarts)[0] == played(arrivals)[0]


@given(ARRIVALS)
def test_it_lets_through_what_a_recount_does(drawn):
    arrivals = [arrival(number, at, offset=n) for n, (number, at) in enumerate(drawn)]
    passed, late, newest, dropped = [], [], -1_000, 0
    for offset, (number, at) in enumerate(drawn):
        newest = max(newest, at)
        if at + 10 < newest - 5:
            late.append((offset, "expired"))
        elif any(each == number and abs(at - then) <= 10 for each, then in passed):
            dropped += 1
        else:
            passed.append((number, at))
    results, found_late, found_dropped = played(arrivals)[0]
    shown = [(each.number, (each.at - T0) // timedelta(minutes=1)) for each in results]
    assert (shown, found_late, found_dropped) == (passed, late, dropped)
