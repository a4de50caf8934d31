"""Starts and ends of a range, and the offsets they stand for, without a broker."""

from datetime import UTC, datetime

import pytest

from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.range import EARLIEST, LATEST, Instant, Last, Offset
from penstock.backbone.topics.span import Span, chosen, settled_range, starts, stops
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import ConfigurationError

ENDS = {0: (5, 10), 1: (0, 0)}


@pytest.fixture
def topics():
    return Topics(Connection("127.0.0.1:1", KafkaSettings()))


def test_one_offset_stands_for_all_partitions_and_a_mapping_for_its_own():
    assert Offset(7).of(3) == 7
    assert Offset({3: 7}).of(3) == 7
    assert Offset({3: 7}).of(4) is None


def test_an_instant_without_a_time_zone_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        Instant(datetime(2024, 1, 1))  # noqa: DTZ001 - that is the point


def test_an_instant_before_the_log_can_begin_is_its_beginning():
    assert Instant(datetime(1, 1, 1, tzinfo=UTC)).milliseconds == 0


def test_an_instant_counts_milliseconds_as_the_log_does():
    assert Instant(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)).milliseconds == 1500


def test_the_last_minus_one_records_are_refused():
    with pytest.raises(ValueError, match="last -1"):
        Last(-1)


def test_a_span_without_an_end_is_never_empty():
    assert not Span(5, None).empty
    assert Span(5, 5).empty
    assert not Span(5, 6).empty


def test_all_partitions_are_chosen_unless_some_are_named():
    assert chosen("t", ENDS, None) == ENDS
    assert chosen("t", ENDS, [1]) == {1: (0, 0)}
    with pytest.raises(ConfigurationError) as caught:
        chosen("t", ENDS, [1, 2, 3])
    assert caught.value.message == "t has no partition 2, 3"
    assert caught.value.detail == "its partitions are 0 to 1"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (EARLIEST, {0: 5, 1: 0}),
        (LATEST, {0: 10, 1: 0}),
        (Offset({0: 10}), {0: 10}),
        (Offset({0: 0, 1: 0}), {0: 0, 1: 0}),
        (Last(3), {0: 7, 1: 0}),
        (Last(99), {0: 5, 1: 0}),
    ],
)
def test_starts_are_offsets(topics, start, expected):
    assert starts(topics, "t", start=start, ends=ENDS) == expected


def test_a_start_beyond_the_end_is_refused(topics):
    with pytest.raises(ConfigurationError, match=r"t\[1\] ends at offset 0"):
        starts(topics, "t", start=Offset(8), ends=ENDS)


@pytest.mark.parametrize(
    ("end", "follow", "expected"),
    [
        (None, False, {0: 10, 1: 0}),
        (None, True, {0: None, 1: None}),
        (LATEST, True, {0: 10, 1: 0}),
        (Offset(7), False, {0: 7, 1: 0}),
        (Offset(7), True, {0: 7, 1: 7}),
        (Offset({0: 12}), True, {0: 12, 1: None}),
    ],
)
def test_stops_are_offsets_not_beyond_the_log_unless_it_is_followed(topics, end, follow, expected):
    assert stops(topics, "t", end=end, ends=ENDS, follow=follow) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (EARLIEST, LATEST, {0: (5, 10), 1: (0, 0)}),
        (Last(2), LATEST, {0: (8, 10), 1: (0, 0)}),
        (Offset({0: 2}), Offset({0: 7}), {0: (5, 7), 1: (0, 0)}),
        (Offset(0), Offset(3), {0: (5, 5), 1: (0, 0)}),
        (LATEST, Offset(7), {0: (10, 10), 1: (0, 0)}),
    ],
)
def test_a_settled_range_has_what_is_on_the_log_and_is_never_negative(topics, start, end, expected):
    assert settled_range(topics, "t", start=start, end=end, ends=ENDS) == expected
