"""How far event time has come, in numbers and words."""

from penstock.core.status.eventtimes import EventTimes

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


def test_without_a_watermark_there_is_nothing_to_say():
    assert EventTimes().series(NOON) == {}
    assert EventTimes().words(NOON) == ""


def test_a_watermark_has_a_distance_from_the_clock_and_from_the_newest_event():
    times = EventTimes(watermark=NOON - 90, newest=NOON - 30)
    assert times.series(NOON) == {
        "newest_event_timestamp_seconds": NOON - 30,
        "watermark_timestamp_seconds": NOON - 90,
        "watermark_behind_clock_seconds": 90,
        "watermark_behind_newest_seconds": 60,
    }
    assert times.words(NOON) == (
        "2026-01-01T11:58:30.000Z, 1m30s behind the clock, 1m00s behind the newest event"
    )
    assert EventTimes(NOON + 60).words(NOON) == "2026-01-01T12:01:00.000Z, 1m00s ahead of the clock"


def test_a_whole_is_as_far_as_its_slowest_part_and_has_seen_what_any_has():
    parts = [EventTimes(5.0, 9.0), EventTimes(), EventTimes(3.0, 4.0)]
    assert EventTimes.of_all(parts) == EventTimes(3.0, 9.0)
    assert EventTimes.of_all([]) == EventTimes()


def test_what_was_seen_stays_seen():
    times = EventTimes(1.0, 5.0).after(EventTimes(2.0, 4.0)).after(EventTimes())
    assert times == EventTimes(2.0, 5.0)
    assert EventTimes.of_micros(1_500_000) == EventTimes(1.5)
