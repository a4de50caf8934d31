from datetime import timedelta

import pytest

from penstock import EventTime
from penstock.core.options import UnreadableSpan


def test_spans_are_texts_or_timedeltas():
    assert EventTime(disorder="90s", ahead="1h") == EventTime(
        disorder=timedelta(seconds=90), ahead=timedelta(hours=1)
    )
    assert EventTime(disorder="90s").disorder == timedelta(seconds=90)


def test_a_partition_that_is_silent_for_a_minute_holds_nothing_back_unless_it_is_said():
    assert EventTime().idle_after == timedelta(minutes=1)
    assert EventTime(idle_after=None).idle_after is None


def test_event_time_is_a_value_that_cannot_change():
    given = EventTime(disorder="1s")
    assert {given: "kept"}[EventTime(disorder="1s")] == "kept"
    with pytest.raises(AttributeError):
        given.disorder = timedelta()


def test_a_span_that_cannot_be_read_raises_nothing_and_keeps_what_is_wrong():
    span = EventTime(disorder=7).disorder
    assert isinstance(span, UnreadableSpan)
    assert "7 has no unit" in span.problem


def test_its_parts_are_given_by_name():
    with pytest.raises(TypeError):
        EventTime("30s")
