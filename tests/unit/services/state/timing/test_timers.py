import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.core.graph.state import CallScope
from penstock.core.instants import instant, micros
from penstock.services.state.states import States
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


@record(key="device")
class Plain:
    device: str


app = App("demo")
readings = app.stream("readings", Reading, event_time=EventTime(disorder="10s"))
plain = app.stream("plain", Plain)


def queue(*reads):
    return TimerQueue(TaskEventTime(reads or (readings,)), clock=lambda: NOW_AT)


def at(seconds):
    return NOW_AT + timedelta(seconds=seconds)


def here_at(key, *, firing=None):
    here = CallScope()
    here.key, here.firing = key, firing
    return here


def put(subject, key, name, seconds, *, time="event", payload=None, here=None):
    subject.put(here or here_at(key), time, name, at(seconds), payload)


def popped(subject, time, seconds):
    found = []
    while due := subject.pop(time, micros(at(seconds))):
        found.append((due.key, due.name))
    return found


def test_timers_go_off_in_order_of_instant_key_and_name():
    subject = queue()
    put(subject, b"b", "x", 2)
    put(subject, b"a", "y", 2)
    put(subject, b"a", "x", 2)
    put(subject, b"c", "x", 1)
    put(subject, b"c", "late", 9)
    assert popped(subject, "event", 5) == [(b"c", "x"), (b"a", "x"), (b"a", "y"), (b"b", "x")]
    assert len(subject) == 1


def test_the_two_times_keep_apart():
    subject = queue()
    put(subject, b"a", "x", 1, time="event")
    put(subject, b"a", "x", 1, time="processing")
    assert popped(subject, "processing", 5) == [(b"a", "x")]
    assert popped(subject, "event", 5) == [(b"a", "x")]


def test_setting_a_timer_again_moves_it():
    subject = queue()
    put(subject, b"a", "x", 1)
    put(subject, b"a", "x", 7)
    assert subject.first("event") == micros(at(7))
    assert popped(subject, "event", 5) == []
    assert subject.due_at("event", b"a", "x") == at(7)


def test_a_timer_that_is_moved_for_ever_holds_no_memory():
    subject = queue()
    for seconds in range(10_000):
        put(subject, b"a", "x", seconds)
    assert len(subject.store._heaps["event"]) < 200
    assert popped(subject, "event", 20_000) == [(b"a", "x")]


def test_what_a_failed_call_did_is_taken_back():
    subject = queue()
    put(subject, b"a", "moved", 1)
    put(subject, b"a", "gone", 1)
    here = here_at(b"a")
    put(subject, b"a", "moved", 9, here=here)
    put(subject, b"a", "moved", 10, here=here)
    subject.drop(here, "event", "gone")
    put(subject, b"a", "new", 1, here=here)
    here.take_back()
    assert popped(subject, "event", 5) == [(b"a", "gone"), (b"a", "moved")]


def test_a_timer_set_by_a_timer_must_be_later_so_that_a_chain_gets_on():
    subject = queue()
    put(subject, b"a", "x", 1)
    due = subject.pop("event", micros(at(5)))
    here = here_at(b"a", firing=due)
    with pytest.raises(ValueError, match="must be due after 'x'"):
        put(subject, b"a", "y", 1, here=here)
    put(subject, b"a", "y", 2, here=here)
    put(subject, b"a", "y", 0, time="processing", here=here)


def test_a_stream_without_event_time_has_no_event_timers():
    subject = queue(plain)
    with pytest.raises(ValueError, match="no record here has an event time"):
        put(subject, b"a", "x", 1)
    with pytest.raises(ValueError, match="has had an event time"):
        subject.now_at(CallScope(), "event")
    assert subject.now_at(CallScope(), "processing") == NOW_AT


@pytest.mark.parametrize("payload", [{1, 2}, (1, 2), float("nan"), object()])
def test_a_payload_that_json_cannot_hold_is_refused(payload):
    with pytest.raises((TypeError, ValueError)):
        put(queue(), b"a", "x", 1, payload=payload)


TIMES = st.sampled_from(["event", "processing"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "drop", "pop", "fail"]),
        TIMES,
        st.sampled_from([b"", b"a", b"\x00b\x00"]),
        st.sampled_from(["x", "y"]),
        st.integers(0, 20),
        st.booleans(),
    ),
    max_size=40,
)


@given(STEPS)
def test_timers_rebuilt_from_their_changelog_are_the_timers_that_were_set(steps):
    """The queue against a plain dictionary, committed at random moments, rebuilt at the end."""
    subject, model, log = queue(), {}, []
    states = States([], changelog="changelog", clock=lambda: NOW_AT, timers=subject)
    for action, time, key, name, seconds, commits in steps:
        here = here_at(key)
        if action in {"put", "fail"}:
            put(subject, key, name, seconds, time=time, payload=[name], here=here)
        if action == "put":
            model[time, key, name] = seconds
        elif action == "fail":
            here.take_back()
        elif action == "drop":
            subject.drop(here, time, name)
            model.pop((time, key, name), None)
        else:
            wanted = sorted((s, k, n) for (t, k, n), s in model.items() if t == time)
            due = subject.pop(time, micros(at(seconds)))
            if not wanted or wanted[0][0] > seconds:
                assert due is None
            else:
                assert (instant(due.at), due.key, due.name) == (at(wanted[0][0]), *wanted[0][1:])
                del model[time, due.key, due.name]
        if commits:
            log += states.changes()
            states.settle()
    log += states.changes()
    rebuilt = queue()
    restored = States([], changelog="changelog", clock=lambda: NOW_AT, timers=rebuilt)
    for key, value in log:
        restored.apply(key, value)
    for time in ("event", "processing"):
        wanted = sorted((s, k, n) for (t, k, n), s in model.items() if t == time)
        assert popped(rebuilt, time, 100) == [(k, n) for _, k, n in wanted]


def test_a_timer_takes_about_400_bytes():
    queue, here = TimerQueue(TaskEventTime([]), clock=lambda: NOW_AT), CallScope()
    tracemalloc.start()
    try:
        for number in range(5000):
            here.key = b"device-%08d" % number
            here.undo.clear()
            due_at = NOW_AT + timedelta(seconds=number)
            queue.put(here, "processing", "silent", due_at, None)
        queue.settle()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 200 < taken / 5000 < 600
