from penstock.core.records.deadletter import Coordinates
from penstock.pipelines.gate.sweepranges import (
    behind,
    is_forgotten,
    ranges_to_sweep,
    starting_position,
)

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def test_a_batch_without_refused_rows_is_not_looked_at():
    assert ranges_to_sweep({A0: 5}, {A0: 5}, {A0: 9}, rejected=False) == {}


def test_of_a_batch_with_refused_rows_what_is_behind_the_position_is_looked_at():
    found = ranges_to_sweep({A0: 5, B0: 9}, {A0: 5}, {A0: 9, A1: 2, B0: 9}, rejected=True)
    assert found == {"a": {0: (5, 9), 1: (0, 2)}}


def test_a_batch_that_nobody_followed_is_looked_at_with_the_next_one():
    found = ranges_to_sweep({A0: 3}, {A0: 5}, {A0: 9}, rejected=False)
    assert found == {"a": {0: (3, 9)}}


def test_a_batch_that_was_swept_before_is_not_looked_at_again():
    assert ranges_to_sweep({A0: 9}, {A0: 5}, {A0: 9}, rejected=True) == {}


def test_a_position_is_forgotten_where_there_are_records_and_it_has_none():
    assert is_forgotten({}, {A0: (0, 3)})
    assert not is_forgotten({}, {A0: (3, 3)})
    assert not is_forgotten({A0: 1}, {A0: (0, 3)})


def test_the_last_letter_of_a_partition_says_how_far_it_was_looked_at():
    places = [Coordinates("a", 0, 4), Coordinates("a", 0, 2), Coordinates("b", 0, 7)]
    assert behind(places) == {A0: 5, B0: 8}


def test_it_begins_neither_before_the_log_nor_before_what_the_pipeline_reads():
    ends = {A0: (10, 20), A1: (0, 20), B0: (0, 5)}
    found = starting_position({A0: 3, A1: 7}, ends, {B0: 4, A1: 2})
    assert found == {A0: 10, A1: 7, B0: 4}
