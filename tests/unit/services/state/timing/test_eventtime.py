"""Event time of a task: the slowest of its streams holds it back, unless it is silent."""

from datetime import UTC, datetime, timedelta

from penstock import App, EventTime, record
from penstock.core.instants import micros
from penstock.services.state.timing.eventtime import TaskEventTime

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


@record(key="device", time="at")
class Sample:
    device: str
    at: int


@record(key="device")
class Plain:
    device: str


app = App("demo")
readings = app.stream("readings", Reading, event_time=EventTime(disorder="10s", idle_after="1m"))
samples = app.stream("samples", Sample, event_time=EventTime(idle_after="2m"))
plain = app.stream("plain", Plain)
patient = app.stream("patient", Reading, event_time=EventTime(idle_after=None))
loose = app.stream("loose", Reading, event_time=EventTime(follows="newest"))
places = app.table("places", Reading)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def reading(seconds):
    return Reading("a", at(seconds))


def sample(seconds):
    return Sample("a", micros(at(seconds)) // 1000)


def clock(seconds):
    return lambda: at(seconds)


def test_of_one_stream_it_is_the_newest_less_the_disorder_and_never_goes_back():
    subject = TaskEventTime((readings, plain))
    assert (subject.known, subject.at) == (True, None)
    subject.see("plain", Plain("a"))
    assert subject.at is None
    subject.see("readings", reading(60))
    assert (subject.at, subject.changed) == (at(50), True)
    subject.see("readings", reading(30))
    assert subject.at == at(50)
    assert subject.looks_again() is None
    assert not TaskEventTime((plain,)).known


def test_a_time_that_is_no_instant_is_not_taken():
    subject = TaskEventTime((samples,))
    subject.see("samples", sample(5))
    subject.see("samples", Sample("a", 10**18))
    assert subject.at == at(5)


def test_the_slowest_stream_holds_it_back_also_before_its_first_record():
    subject = TaskEventTime((readings, samples))
    subject.look(clock(0))
    subject.see("readings", reading(60))
    assert subject.at is None
    subject.see("samples", sample(20))
    assert subject.at == at(20)
    subject.see("samples", sample(300))
    assert subject.at == at(50)
    subject.see("readings", reading(400))
    assert subject.at == at(300)


def test_a_stream_that_is_silent_holds_it_back_no_more_and_does_so_again_when_it_wakes():
    subject = TaskEventTime((readings, samples))
    subject.look(clock(0))
    subject.see("samples", sample(20))
    subject.look(clock(59))
    assert (subject.at, subject.looks_again()) == (None, micros(at(60)))
    subject.look(clock(60))
    assert subject.at == at(20)
    subject.see("samples", sample(30))
    subject.see("readings", reading(35))
    subject.see("samples", sample(90))
    assert subject.at == at(30)
    subject.see("readings", reading(70))
    assert subject.at == at(60)


def test_while_records_of_it_wait_a_stream_is_not_silent():
    waiting = {"readings"}
    subject = TaskEventTime((readings, samples), waits=waiting.__contains__)
    subject.look(clock(0))
    subject.see("samples", sample(20))
    subject.look(clock(90))
    assert (subject.at, subject.looks_again()) == (None, micros(at(91)))
    waiting.clear()
    subject.look(clock(91))
    assert subject.at == at(20)


def test_where_all_are_silent_the_newest_counts():
    subject = TaskEventTime((readings, samples))
    subject.look(clock(0))
    subject.see("samples", sample(20))
    subject.see("readings", reading(100))
    assert subject.at == at(20)
    subject.look(clock(500))
    assert (subject.at, subject.looks_again()) == (at(90), None)


def test_a_stream_that_is_never_idle_holds_it_back_for_ever():
    subject = TaskEventTime((readings, patient))
    subject.look(clock(0))
    subject.see("readings", reading(60))
    subject.look(clock(10**6))
    assert subject.at is None
    assert subject.looks_again() is None


def test_tables_and_streams_that_follow_the_newest_hold_nothing_back():
    subject = TaskEventTime((readings, places, loose))
    subject.see("readings", reading(60))
    assert subject.at == at(50)
    for topic in ("places", "loose"):
        subject.see(topic, reading(500))
    assert subject.at == at(50)
    alone = TaskEventTime((places, loose))
    alone.see("places", reading(5))
    alone.see("loose", reading(9))
    alone.see("places", reading(7))
    assert alone.at == at(9)


def test_an_instant_that_is_told_is_told_to_every_stream():
    subject = TaskEventTime((readings, samples))
    subject.see_all(at(60))
    assert subject.at == at(50)


def test_after_a_restart_every_stream_is_where_it_was():
    before = TaskEventTime((readings, samples))
    before.look(clock(0))
    before.see("readings", reading(60))
    before.see("samples", sample(100))
    subject = TaskEventTime((readings, samples))
    subject.load(before.dump())
    subject.look(clock(1))
    assert subject.at == at(50)
    subject.see("readings", reading(90))
    assert subject.at == at(80)


def test_a_silence_goes_on_through_a_restart():
    before = TaskEventTime((readings, samples))
    before.look(clock(0))
    before.see("readings", reading(0))
    before.see("samples", sample(100))
    subject = TaskEventTime((readings, samples))
    subject.load(before.dump())
    subject.look(clock(61))
    assert subject.at == at(100)


def test_a_stream_that_is_new_after_a_restart_is_waited_for_and_one_that_went_is_not():
    before = TaskEventTime((readings, patient))
    before.see("readings", reading(60))
    before.see("patient", reading(70))
    subject = TaskEventTime((readings, samples))
    subject.load(before.dump())
    subject.look(clock(0))
    subject.see("readings", reading(90))
    assert subject.at == at(50)
    subject.see("samples", sample(70))
    assert subject.at == at(70)


def test_the_event_time_of_an_earlier_version_is_taken_over():
    subject = TaskEventTime((readings, samples))
    subject.load(b"%d" % micros(at(50)))
    assert subject.at == at(50)
