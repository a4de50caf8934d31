from datetime import timedelta

from penstock.connectors.connector import BatchLimits, Row
from penstock.connectors.sink.batches import Batches

LIMITS = BatchLimits(rows=3, size=10, span=timedelta(seconds=5))


def row(offset: int, value: bytes = b"1") -> Row:
    return Row(offset, value, offset)


def test_a_batch_is_full_by_rows_or_by_bytes_for_each_partition_on_its_own():
    batches = Batches(LIMITS)
    assert not batches.add(0, row(7), at=0.0)
    assert not batches.add(1, row(9), at=0.0)
    assert not batches.add(0, row(8), at=0.0)
    assert batches.add(0, row(9), at=0.0)
    assert batches.add(1, row(10, b"x" * 9), at=0.0)


def test_the_first_record_of_a_batch_says_when_it_is_due():
    batches = Batches(LIMITS)
    batches.add(0, row(1), at=1.0)
    batches.add(1, row(1), at=3.0)
    batches.add(0, row(2), at=5.9)
    assert batches.due(5.9) == []
    assert batches.due(6.0) == [0]
    assert batches.due(8.0) == [0, 1]


def test_a_batch_ends_behind_its_last_record_also_where_that_was_a_dead_letter():
    batches = Batches(LIMITS)
    batches.add(0, row(4), at=0.0)
    batches.bury(0, 8, at=0.0)
    batch = batches.take(0)
    assert ([each.offset for each in batch.rows], batch.position, batch.dead) == ([4], 9, 1)
    assert batches.held() == []


def test_dead_letters_alone_are_due_too_so_that_the_group_moves_on():
    batches = Batches(LIMITS)
    batches.bury(0, 8, at=0.0)
    assert batches.due(5.0) == [0]


def test_what_a_lost_partition_held_is_forgotten_and_counted():
    batches = Batches(LIMITS)
    batches.add(0, row(1), at=0.0)
    batches.bury(0, 2, at=0.0)
    batches.add(1, row(1), at=0.0)
    assert batches.drop([0, 5]) == 2
    assert batches.held() == [1]


def test_records_that_were_written_before_are_in_no_batch_and_move_the_group():
    batches = Batches(LIMITS)
    batches.skip(0, 3, at=0.0)
    assert batches.due(5.0) == [0]
    batch = batches.take(0)
    assert (batch.rows, batch.dead, batch.position) == ([], 0, 4)
