"""Records combined before the shuffle give the panes that records one by one give."""

import runpy
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.panes.arrivals import Arrivals, unpack_arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.machine import Windowing
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.triggers import DEFAULT, AfterCount, AfterDelay, AfterWatermark, Repeat
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
)
from penstock.core.rollup.reader import RollupReader
from penstock.pipelines.rollups.combining import BUCKET, PAYLOAD, Heartbeat, PreShuffleCombiner
from penstock.pipelines.rollups.frame import SELECTED

rows = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rollup_rows.py"))))
SECOND = rows.SECOND
AHEAD_OF_CLOCK = 20 * SECOND
STAMPED = {"first", "last"}

windowings = st.builds(
    Windowing,
    windows=st.sampled_from(
        [
            FixedWindows(3 * SECOND),
            FixedWindows(7 * SECOND, 2 * SECOND + 1),
            SlidingWindows(4 * SECOND, 2 * SECOND),
            SlidingWindows(5 * SECOND, 3 * SECOND, 1),
            SessionWindows(2 * SECOND + 7),
            CountWindows(3),
            GlobalWindow(),
        ]
    ),
    trigger=st.sampled_from(
        [
            DEFAULT,
            AfterWatermark(),
            AfterWatermark(AfterCount(2), AfterCount(1)),
            AfterWatermark(AfterDelay(SECOND), AfterDelay(SECOND)),
            Repeat(AfterCount(2)),
        ]
    ),
    mode=st.sampled_from(["discarding", "accumulating", "retracting"]),
    lateness=st.sampled_from([0, 5 * SECOND]),
    stamp=st.sampled_from(["end", "earliest", "latest"]),
)
moments = st.lists(
    st.tuples(
        st.integers(0, 4).map(lambda passed: passed * SECOND),
        st.lists(st.tuples(st.integers(0, 2), rows.readings), max_size=8),
    ),
    min_size=1,
    max_size=5,
)


class OneByOne:
    """Every record as an element of its own, in one bucket."""

    def __init__(self, rollup):
        self.rollup = rollup
        self.reader = RollupReader(rollup)
        self.bucket = Bucket(rollup.machine(), rollup.rule, MemoryStore())

    def take(self, clock, given):
        came = [Arrivals(clock=clock)]
        for partition, own in groupby(sorted(given, key=itemgetter(0, 1)), itemgetter(0)):
            arrivals = Arrivals(clock=clock, source=str(partition), elements={}, ahead=[])
            for _, offset, time, ahead, record in own:
                key, values = self.reader.read(record, self.reader.time(record, clock))
                if ahead:
                    arrivals.ahead.append((key, time, (str(partition), offset)))
                    continue
                element = (time, values, (str(partition), offset))
                arrivals.elements.setdefault(key, []).append(element)
                arrivals.newest = max(
                    time, arrivals.newest if arrivals.newest is not None else time
                )
            came.append(arrivals)
        return facts([self.bucket.take(came)])


class Combined:
    """Every record as Spark sends it: combined by task, and shuffled to several buckets."""

    def __init__(self, rollup, buckets):
        self.rollup = rollup
        self.numbers = tuple(range(100, 100 + buckets))
        self.buckets = {
            number: Bucket(rollup.machine(), rollup.rule, MemoryStore()) for number in self.numbers
        }

    def take(self, clock, given, tasks):
        """Take what came in one moment, its partitions read by so many tasks."""
        came = {number: [] for number in self.numbers}
        for task in range(tasks):
            own = [row for row in given if row[0] % tasks == task]
            for batch in PreShuffleCombiner(self.rollup, self.numbers)(
                batches(self.rollup, own, clock)
            ):
                for row in batch.to_pylist():
                    came[row[BUCKET]].append(unpack_arrivals(row[PAYLOAD]))
        (beat,) = Heartbeat(self.numbers)([pa.record_batch({"clock": pa.array([clock])})])
        for row in beat.to_pylist():
            came[row[BUCKET]].append(unpack_arrivals(row[PAYLOAD]))
        taken = [self.buckets[number].take(each) for number, each in came.items()]
        for number, found in zip(self.numbers, taken, strict=True):
            home = self.numbers.index(number)
            keys = [key for key, _ in (*found.panes, *found.late)]
            assert all(crc32(key) % len(self.numbers) == home for key in keys)
        return facts(taken)


def batches(rollup, given, clock):
    """Cut the rows of a task into Arrow batches of a few rows, an empty one among them."""
    table = rows.table(rollup, given, clock=clock)
    return [*table.slice(0, 0).to_batches(), *table.to_batches(max_chunksize=3)]


def facts(taken):
    """Return panes, late and distrusted records in an order that says nothing."""
    panes = sorted(
        (
            *(key, pane.window, pane.index, pane.timing, pane.on_time_index, pane.last, pane.stamp),
            rows.plain(pane.value),
            rows.plain(pane.withdraws),
        )
        for found in taken
        for key, pane in found.panes
    )
    late = sorted(
        (key, each.window, each.time, each.reason, each.lateness, tuple(each.origin))
        for found in taken
        for key, each in found.late
    )
    ahead = sorted(
        (key, time, tuple(origin)) for found in taken for key, time, origin in found.ahead
    )
    (watermark,) = {found.watermark for found in taken}
    return rows.plain(panes), late, ahead, watermark


@given(
    windowing=windowings,
    by=st.sampled_from(sorted(rows.BY)),
    names=st.lists(st.sampled_from(sorted(rows.AGGREGATES)), min_size=1, max_size=6, unique=True),
    time=st.sampled_from(["event", "event", "processing"]),
    moments=moments,
    buckets=st.integers(1, 3),
    tasks=st.integers(1, 2),
)
def test_combined_records_give_the_panes_of_single_ones(
    *, windowing, by, names, time, moments, buckets, tasks
):
    rollup = rows.declared(windowing, by, tuple(sorted(names)), ahead="20s", time=time)
    singly, combined = OneByOne(rollup), Combined(rollup, buckets)
    reader, clock, offset = RollupReader(rollup), 0, 0
    for passed, readings in moments:
        clock += passed
        given = []
        for partition, record in readings:
            happened = reader.time(record, clock)
            ahead = time == "event" and happened > clock + AHEAD_OF_CLOCK
            given.append((partition, offset, happened, ahead, record))
            offset += 1
        panes, *others = singly.take(clock, given)
        found, *found_others = combined.take(clock, given, tasks)
        assert found_others == others
        assert found == rows.near(panes)


def test_a_task_without_records_says_nothing_and_one_with_distrusted_ones_only_does():
    windowing = Windowing(windows=FixedWindows(SECOND))
    rollup = rows.declared(windowing, "device", ("records",), ahead="20s")
    combine = PreShuffleCombiner(rollup, (4, 9))
    assert list(combine(batches(rollup, [], 0))) == []
    far = rows.Reading("a", rows.EPOCH)
    (batch,) = combine(batches(rollup, [(3, 7, 50 * SECOND, True, far)], 5))
    assert batch.column(BUCKET).to_pylist() == [4, 9]
    came = [unpack_arrivals(each) for each in batch.column(PAYLOAD).to_pylist()]
    assert [(each.clock, each.source, each.newest) for each in came] == [(5, "3", None)] * 2
    assert [ahead for each in came for ahead in each.ahead] == [
        (RollupReader(rollup).read(far, 0)[0], 50 * SECOND, ["3", 7])
    ]


def test_records_that_were_not_selected_move_the_watermark_and_nothing_else():
    rollup = rows.declared(Windowing(windows=FixedWindows(SECOND)), "device", ("records",))
    near, far = rows.Reading("a", rows.EPOCH), rows.Reading("b", rows.EPOCH)
    given = [(0, 0, 0, False, near), (0, 1, 50 * SECOND, False, far), (0, 2, SECOND, True, far)]
    table = rows.table(rollup, given, clock=0)
    table = table.append_column(SELECTED, pa.array([True, False, False]))
    (batch,) = PreShuffleCombiner(rollup, (4,))(table.to_batches())
    (came,) = map(unpack_arrivals, batch.column(PAYLOAD).to_pylist())
    assert came.newest == 50 * SECOND
    assert (list(came.partials), came.ahead) == ([RollupReader(rollup).read(near, 0)[0]], [])


def test_every_bucket_hears_how_far_a_partition_has_come():
    windowing = Windowing(windows=FixedWindows(SECOND))
    rollup = rows.declared(windowing, "device", ("records",))
    given = [(0, 1, 5 * SECOND, False, rows.Reading("a", rows.EPOCH))]
    (batch,) = PreShuffleCombiner(rollup, (0, 1, 2, 3))(batches(rollup, given, 0))
    came = [unpack_arrivals(each) for each in batch.column(PAYLOAD).to_pylist()]
    assert [each.newest for each in came] == [5 * SECOND] * 4
    assert sum(len(each.partials) for each in came) == 1
