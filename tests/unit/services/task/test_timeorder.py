"""Records of several partitions in the order of their times, as far as they are there."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.services.task.timeorder import LONGEST_WAIT, MOST_WAITING, TimeOrder
from penstock.testing.memorylog import MemoryRecord

A, B = ("a", 0), ("b", 0)
T0 = datetime(2026, 1, 1, tzinfo=UTC)


def record(partition, offset, second):
    at = T0 + timedelta(seconds=second)
    return MemoryRecord(partition, offset, key=b"k", value=b"", headers=(), written_at=at)


def seconds(raw):
    return (raw.timestamp()[1] - round(T0.timestamp() * 1000)) // 1000


class Bench:
    def __init__(self, *, waits=0, tables=()):
        self.ended = {A: True, B: True}
        times = {"a": seconds, "b": seconds}
        drained = lambda at, _: self.ended[at]  # noqa: E731
        self.order = TimeOrder({A: 0, B: 0}, times, waits=waits, tables=tables, drained=drained)

    def put(self, partition, *times):
        start = self.order.next_offset(partition)
        found = [record(partition, start + n, second) for n, second in enumerate(times)]
        return self.order.put(partition, found)

    def taken(self, clock=0):
        found = []
        while (run := self.order.take(clock)) is not None:
            found += [(run[0][0], seconds(raw)) for raw in run[1]]
        return found


def test_the_earliest_comes_first_and_of_equal_times_the_same_one():
    bench = Bench()
    bench.put(B, 1, 2, 5)
    bench.put(A, 1, 3, 4)
    assert bench.taken() == [("a", 1), ("b", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)]


def test_of_equal_times_the_rows_of_a_table_come_first_whatever_its_name():
    bench = Bench(tables={"b"})
    bench.put(A, 1, 1, 3)
    bench.put(B, 1, 1, 2)
    assert bench.taken() == [("b", 1), ("b", 1), ("a", 1), ("a", 1), ("b", 2), ("a", 3)]


def test_a_partition_whose_records_are_on_their_way_is_waited_for_with_a_bound():
    bench = Bench()
    bench.ended[B] = False
    bench.put(A, 1, 3)
    assert bench.taken(100) == []
    assert bench.order.wakes() == 100 + LONGEST_WAIT
    bench.put(B, 2)
    assert bench.taken(200) == [("a", 1), ("b", 2)]
    assert bench.taken(199 + LONGEST_WAIT) == []
    assert bench.taken(200 + LONGEST_WAIT) == [("a", 3)]
    assert bench.order.wakes() is None


def test_a_partition_at_its_end_is_waited_for_as_long_as_was_declared():
    bench = Bench(waits=50)
    bench.put(A, 1)
    assert bench.taken(0) == []
    assert bench.order.wakes() == 50
    assert bench.taken(50) == [("a", 1)]
    bench.put(A, 2)
    assert bench.taken(60) == []
    assert bench.order.wakes() == 110


def test_what_came_before_is_not_taken_twice_and_what_is_too_much_comes_again():
    bench = Bench()
    many = [record(A, offset, offset) for offset in range(MOST_WAITING + 5)]
    assert bench.order.put(A, many[:10]) == 10
    assert bench.order.put(A, many[5:]) == MOST_WAITING - 5
    assert bench.order.full(A)
    assert bench.order.next_offset(A) == MOST_WAITING
    assert len(bench.taken()) == MOST_WAITING
    assert bench.order.put(A, many[MOST_WAITING:])
    bench.order.go_back(A, 3)
    assert bench.taken() == []
    assert bench.order.next_offset(A) == 3


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)), st.integers(1, 7))
def test_two_backlogs_in_order_are_merged_in_order(a, b, step):
    bench = Bench()
    a, b = sorted(a), sorted(b)
    bench.ended = {A: False, B: False}
    found = []
    for at in range(0, max(len(a), len(b)) + 1, step):
        bench.put(A, *a[at : at + step])
        bench.put(B, *b[at : at + step])
        bench.ended = {A: at + step >= len(a), B: at + step >= len(b)}
        found += bench.taken()
    assert found == sorted([("a", each) for each in a] + [("b", each) for each in b], key=_by_time)


def _by_time(pair):
    return pair[1], pair[0]
