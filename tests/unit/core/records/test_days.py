"""Days of instants, in lake tables and in their retention."""

from datetime import UTC, date, datetime, timedelta, timezone

from penstock import App, day, record
from penstock.core.records.days import first_kept_day
from penstock.core.rules.check import check


@record(key="id", time="at")
class Event:
    id: str
    at: datetime


def test_a_lake_table_has_a_column_for_the_day_it_is_partitioned_by():
    app = App("shop")
    lake = app.lake("kept", Event, partition_by=("id", day("at")), retention="90d", history="2d")
    assert check(app.graph) == []
    assert lake.partition_columns == ("id", "at_day")
    assert (lake.retention, lake.history) == (timedelta(days=90), timedelta(days=2))


def test_without_options_a_table_is_kept_for_ever_and_a_week_of_its_past_can_be_read():
    lake = App("shop").lake("kept", Event)
    assert (lake.partition_columns, lake.retention, lake.history) == ((), None, timedelta(days=7))


def test_a_day_expires_when_its_last_instant_has():
    now = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)
    assert first_kept_day(now, timedelta(days=2)) == date(2026, 3, 8)
    assert first_kept_day(now, timedelta(hours=15)) == date(2026, 3, 10)
    assert first_kept_day(now, timedelta(hours=16)) == date(2026, 3, 9)


def test_days_are_those_of_utc_wherever_the_clock_stands():
    east = datetime(2026, 3, 10, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    assert first_kept_day(east, timedelta()) == date(2026, 3, 9)
