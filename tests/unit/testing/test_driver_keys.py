"""Equal values are one key, however they are written: of joins, tables, groups, patterns, state."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock import App, EventTime, State, record
from penstock.aggregates import count
from penstock.patterns import pattern
from penstock.tables import broadcast
from penstock.testing import Driver
from penstock.windows import fixed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=1)))


@record(key="slot", time="at")
class Booking:
    slot: datetime
    at: datetime
    who: str


@record(key="slot", time="at")
class Visit:
    slot: datetime
    at: datetime
    who: str


@record(key="who")
class Guest:
    who: str
    slot: datetime


@pytest.fixture
def app():
    return App("museum")


@pytest.fixture
def bookings(app):
    return app.stream("bookings", Booking, event_time=EventTime(follows="newest"))


@pytest.fixture
def visits(app):
    return app.stream("visits", Visit, event_time=EventTime(follows="newest"))


def test_streams_meet_at_the_same_instant(app, bookings, visits):
    met = bookings.join(visits, on="slot", within="1h").select(slot="slot", at_="visits.at")
    results = app.stream("met", met, on="services")
    driver = Driver(app, partitions=5)
    driver.pipe(bookings, Booking(NOON, NOON, "ann"))
    driver.pipe(visits, Visit(ELSEWHERE, NOON, "ann"))
    assert [each.slot for each in driver.read(results)] == [NOON]


def test_a_table_has_one_row_of_an_instant(app):
    table = app.table("slots", Booking)
    driver = Driver(app, partitions=5)
    driver.pipe(table, Booking(NOON, NOON, "ann"), Booking(ELSEWHERE, NOON, "bob"))
    assert [row.who for row in driver.table(table).values()] == ["bob"]
    driver.delete(table, ELSEWHERE)
    assert driver.table(table) == {}


def test_a_row_is_found_by_a_foreign_key_and_in_a_broadcast_table(app, visits):
    slots = app.table("slots", Booking)
    guests = app.table("guests", Guest)
    by_key = app.table("by_key", guests.join(slots, on="slot"), on="services")
    joined = visits.join(broadcast(slots), on="slot").select(who="slots.who")
    near = app.stream("near", joined, on="services")
    driver = Driver(app, partitions=5)
    driver.pipe(slots, Booking(NOON, NOON, "ann"))
    driver.pipe(guests, Guest("bob", ELSEWHERE))
    driver.pipe(visits, Visit(ELSEWHERE, NOON, "cid"))
    assert [row.slots.who for row in driver.table(by_key).values()] == ["ann"]
    assert [each.who for each in driver.read(near)] == ["ann"]


def test_rows_of_an_instant_are_one_group(app):
    guests = app.table("guests", Guest)
    groups = guests.group(by="slot").aggregate(guests=count())
    counts = app.table("counts", groups, on="services")
    driver = Driver(app, partitions=5)
    driver.pipe(guests, Guest("ann", NOON), Guest("bob", ELSEWHERE))
    assert [row.guests for row in driver.table(counts).values()] == [2]


def test_a_window_a_pattern_and_a_service_keep_one_state_of_an_instant(app, bookings, visits):
    windows = bookings.window(fixed("1h"), by="slot").aggregate(bookings=count())
    counts = app.table("counts", windows, on="services")
    came = (
        pattern(by="slot", within="1h")
        .first("booking", bookings)
        .then("visit", visits)
        .select(slot="booking.slot", who="visit.who")
    )
    matches = app.stream("came", came, on="services")
    seen = app.stream("seen", Guest)

    @app.service(reads=bookings, writes=seen)
    def number(booking: Booking, state: State[int]) -> Guest:
        state.set(state.get(0) + 1)
        return Guest(f"{booking.who}{state.get()}", booking.slot)

    driver = Driver(app, partitions=5)
    driver.pipe(bookings, Booking(NOON, NOON, "ann"), Booking(ELSEWHERE, NOON, "bob"))
    driver.pipe(visits, Visit(ELSEWHERE, NOON + timedelta(minutes=5), "cid"))
    driver.advance_event_time(NOON + timedelta(hours=2))
    assert [row.bookings for row in driver.table(counts).values()] == [2]
    assert [match.who for match in driver.read(matches)] == ["cid", "cid"]
    assert {guest.who for guest in driver.read(seen)} == {"ann1", "bob2"}
    assert driver.state(number, ELSEWHERE) == 2


@record(key="k", time="at")
class Measured:
    k: str
    at: datetime
    value: float = 0.0
    when: list[datetime] = []  # noqa: RUF012 - msgspec copies it
    parts: dict[str, float] = {}  # noqa: RUF012


def test_equal_values_come_once(app):
    stream = app.stream("measured", Measured)
    once = {
        by: app.stream(f"by_{by}", stream.deduplicate(by=by, within="1h"), on="services")
        for by in ("value", "when", "parts")
    }
    driver = Driver(app)
    driver.pipe(
        stream,
        Measured("a", NOON, 0.0, [NOON], {"a": 0.0, "b": 1.0}),
        Measured("a", ELSEWHERE, -0.0, [ELSEWHERE], {"b": 1.0, "a": -0.0}),
    )
    assert {by: len(driver.read(each)) for by, each in once.items()} == dict.fromkeys(once, 1)
