"""A bucket gives what the machine alone gives when it looks at every key all the time."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.aggregates.collect import Collect
from penstock.core.panes import waiting
from penstock.core.panes.arrivals import Arrivals, pack_arrivals, unpack_arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.machine import KeyState, PaneMachine, Partial, Windowing
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.times import END, At
from penstock.core.panes.triggers import DEFAULT, AfterCount, AfterDelay, AfterWatermark, Repeat
from penstock.core.panes.watermark import Watermark, WatermarkRule
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
)

SECOND = 1_000_000


windows = st.sampled_from(
    [
        FixedWindows(3 * SECOND),
        SlidingWindows(4 * SECOND, 2 * SECOND),
        SessionWindows(2 * SECOND + 7),
        CountWindows(3),
        GlobalWindow(),
    ]
)
triggers = st.sampled_from(
    [
        DEFAULT,
        AfterWatermark(),
        AfterWatermark(AfterCount(2), AfterCount(1)),
        AfterWatermark(AfterDelay(SECOND), AfterDelay(SECOND)),
        Repeat(AfterDelay(2 * SECOND + 1)),
        Repeat(AfterCount(2)),
    ]
)
windowings = st.builds(
    Windowing,
    windows=windows,
    trigger=triggers,
    mode=st.sampled_from(["discarding", "accumulating", "retracting"]),
    lateness=st.sampled_from([0, SECOND, 5 * SECOND]),
    stamp=st.sampled_from(["end", "earliest", "latest"]),
)
rules = st.builds(
    WatermarkRule,
    disorder=st.sampled_from([0, SECOND]),
    idle_after=st.none() | st.just(3 * SECOND),
    closes_after=st.none() | st.just(4 * SECOND),
)
moments = st.lists(
    st.tuples(
        st.integers(0, 3).map(lambda passed: passed * SECOND // 2),
        st.lists(
            st.tuples(
                st.sampled_from([b"a", b"b", b"c"]),
                st.integers(0, 40).map(lambda time: time * SECOND // 2),
                st.sampled_from(["0", "1"]),
            ),
            max_size=4,
        ),
    ),
    max_size=12,
)


class Everything:
    """The machine over all keys at every moment: slow, and plainly right."""

    def __init__(self, windowing, rule):
        self.machine = PaneMachine(windowing, Collect())
        self.mark = Watermark(rule)
        self.states = {}

    def take(self, clock, elements):
        before = At(self.mark.value, clock)
        by_key = {}
        for key, time, source in elements:
            by_key.setdefault(key, []).append((time, time, (source, time)))
        found = [
            (key, self.machine.add(self.states.setdefault(key, KeyState()), rows, before))
            for key, rows in by_key.items()
        ]
        for source in {source for _, _, source in elements}:
            newest = max(time for _, time, each in elements if each == source)
            self.mark.see(source, newest, clock)
        now = At(self.mark.at(clock), clock)
        found += [(key, self.machine.advance(state, now)) for key, state in self.states.items()]
        panes = [(key, pane) for key, outcome in found for pane in outcome.panes]
        late = [(key, each.origin) for key, outcome in found for each in outcome.late]
        return sorted(panes, key=repr), sorted(late)


def arrivals_of(clock, elements, *, combined):
    """What an engine hands over: one value for each source, packed and unpacked on its way."""
    for source in sorted({source for _, _, source in elements}):
        by_key = {}
        for key, time, each in elements:
            if each == source:
                by_key.setdefault(key, []).append(time)
        yield unpack_arrivals(
            pack_arrivals(
                Arrivals(
                    clock=clock,
                    source=source,
                    newest=max(max(times) for times in by_key.values()),
                    elements={}
                    if combined
                    else {
                        key: [(time, time, (source, time)) for time in times]
                        for key, times in by_key.items()
                    },
                    partials={key: list(combined(times)) for key, times in by_key.items()}
                    if combined
                    else {},
                )
            )
        )


def combiner_of(windowing):
    """Return what combines the elements of a key by window; None where that is not allowed."""
    if isinstance(windowing.windows, SessionWindows | CountWindows):
        return None

    def combined(times):
        found = {}
        for time in times:
            for window in windowing.windows.of(time):
                found.setdefault(window, []).append(time)
        for window, inside in found.items():
            yield Partial(window, inside, array("q", inside), array("q", inside))

    return combined


@settings(max_examples=3 * settings().max_examples)
@given(windowings, rules, moments, st.booleans(), st.lists(st.booleans(), min_size=12))
def test_a_bucket_gives_what_the_machine_gives_over_all_keys(
    windowing, rule, moments, combine, restarts
):
    plain, store, clock = Everything(windowing, rule), MemoryStore(), 0
    bucket = Bucket(PaneMachine(windowing, Collect()), rule, store)
    for (passed, elements), restart in zip(moments, restarts, strict=False):
        clock += passed
        if restart:
            # Everything a bucket knows is in its store.
            bucket.flush()
            bucket = Bucket(PaneMachine(windowing, Collect()), rule, store)
        combined = combiner_of(windowing) if combine else None
        came = [*arrivals_of(clock, elements, combined=combined), Arrivals(clock=clock)]
        # The order of arrival matters to count windows, and a bucket takes source by source.
        panes, late = plain.take(clock, sorted(elements, key=lambda each: each[2]))
        got = bucket.take(came)
        assert sorted(got.panes, key=repr) == panes
        assert sorted((key, tuple(each.origin)) for key, each in got.late) == late
        assert got.watermark == plain.mark.value


@given(windowings, rules, moments)
def test_nothing_happens_before_a_bucket_wakes(windowing, rule, moments):
    store, clock = MemoryStore(), 0
    bucket = Bucket(PaneMachine(windowing, Collect()), rule, store)
    for passed, elements in moments:
        clock += passed
        bucket.take(arrivals_of(clock, elements, combined=None))
        bucket.flush()
    while (wakes := bucket.wakes()) is not None and clock < 60 * SECOND:
        just_before = Bucket(PaneMachine(windowing, Collect()), rule, MemoryStore(store))
        assert not just_before.take([Arrivals(clock=wakes - 1)]).panes or wakes <= clock
        clock = max(clock + SECOND, wakes)
        bucket.take([Arrivals(clock=clock)])
        bucket.flush()


def drained(bucket, given, limit, pause):
    """Take what is left in slices; ``pause`` gives the bucket to go on with after each."""
    panes, late = list(given.panes), list(given.late)
    while bucket.pending:
        bucket = pause(bucket)
        more = bucket.more(limit)
        assert not more.late
        panes += more.panes
    return bucket, panes, late


@settings(max_examples=2 * settings().max_examples)
@given(
    windowings, rules, moments, st.integers(1, 3), st.sampled_from(["at once", "restart", "order"])
)
def test_what_is_due_can_be_given_in_slices_with_a_restart_between_any_two(
    windowing, rule, moments, limit, way
):
    order = (lambda key: -key[0]) if way == "order" else None

    def made(store):
        return Bucket(PaneMachine(windowing, Collect()), rule, store, order=order)

    def pause(bucket):
        bucket.flush()
        bucket.trim(0)
        return made(store) if way == "restart" else bucket

    store, plain, clock = MemoryStore(), made(MemoryStore()), 0
    bucket = made(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "CHUNK_KEYS", 2)
        for passed, several in moments:
            clock += passed
            elements = [(key + b"%d" % n, *rest) for key, *rest in several for n in range(3)]
            wanted = plain.take(arrivals_of(clock, elements, combined=None))
            given_ = bucket.take(arrivals_of(clock, elements, combined=None), limit=limit)
            bucket, panes, late = drained(bucket, given_, limit, pause)
            assert sorted(panes, key=repr) == sorted(wanted.panes, key=repr)
            assert sorted(late, key=repr) == sorted(wanted.late, key=repr)
            assert bucket.wakes() == plain.wakes()


def test_a_record_of_a_key_that_is_due_and_was_not_given_yet_does_not_get_into_its_pane():
    machine = PaneMachine(Windowing(windows=FixedWindows(10), lateness=100), Collect())
    bucket = Bucket(machine, WatermarkRule(), MemoryStore())
    keys = [b"%d" % number for number in range(3)]
    bucket.take([Arrivals(clock=0, newest=3, elements={key: [(3, "first")] for key in keys})])
    bucket.flush()  # in chunks
    given_ = bucket.take([Arrivals(clock=1, newest=20)], limit=0)
    assert (given_.panes, bucket.pending) == ([], True)
    given_ = bucket.take([Arrivals(clock=2, elements={b"1": [(3, "late")]})], limit=0)
    assert [(key, pane.timing, pane.value) for key, pane in given_.panes] == [
        (b"1", "on_time", ["first"]),
        (b"1", "late", ["first", "late"]),
    ]
    given_ = bucket.more()
    assert sorted((key, pane.value) for key, pane in given_.panes) == [
        (b"0", ["first"]),
        (b"2", ["first"]),
    ]
    assert not bucket.pending


def test_windows_in_processing_time_follow_the_clock():
    store = MemoryStore()
    bucket = Bucket(PaneMachine(Windowing(windows=FixedWindows(10)), Collect()), None, store)
    assert not bucket.take([Arrivals(clock=3, elements={b"a": [(3, "x")]})]).panes
    assert not bucket.take([Arrivals(clock=9, elements={b"a": [(9, "y")]})]).panes
    ((key, pane),) = bucket.take([Arrivals(clock=10)]).panes
    assert (key, pane.window, pane.value, pane.timing) == (b"a", (0, 10), ["x", "y"], "on_time")


def test_finishing_closes_every_window():
    store = MemoryStore()
    machine = PaneMachine(Windowing(windows=FixedWindows(10), lateness=5), Collect())
    bucket = Bucket(machine, WatermarkRule(), store)
    bucket.take([Arrivals(clock=0, newest=12, elements={b"a": [(3, 3), (12, 12)]})])
    assert [pane.value for _, pane in bucket.finish().panes] == [[12]]
    bucket.flush()
    assert list(store) == [b"h"]


def test_whole_numbers_of_any_size_are_kept():
    held = {
        "sum": [2**70, -(2**90)],
        "different": {2**80: True, 5: [2**81]},
        "small": [1, -1, 2**63, True, None, 0.5, b"x"],
    }
    assert decode(encode(held)) == held


def test_a_window_without_an_end_is_not_looked_at_for_ever_at_the_end_of_time():
    machine = PaneMachine(Windowing(windows=GlobalWindow(), lateness=END), Collect())
    bucket = Bucket(machine, WatermarkRule(), MemoryStore())
    bucket.take([Arrivals(clock=0, newest=3, elements={b"a": [(3, 3)]})])
    assert [pane.value for _, pane in bucket.take([Arrivals(clock=0, newest=END)]).panes] == [[3]]
    assert not bucket.pending
