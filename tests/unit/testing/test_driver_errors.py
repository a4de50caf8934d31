"""Error policies and the three deliveries, in the driver."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from penstock import App, State, Timer, Timers, on_error, record, retry
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.rules.check import check
from penstock.core.status.report import Counts
from penstock.errors import UserCodeError
from penstock.testing import Driver
from penstock.testing.clock import START_AT


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


class Flaky:
    """An application whose service fails as often as it is told to."""

    def __init__(self, **options):
        self.app = App("demo")
        self.words = self.app.stream("words", Word, partitions=1)
        self.counts = self.app.stream("counts", Count)
        self.failures = {}
        self.calls = []

        def count(word: Word, total: State[int]) -> Count:
            self.calls.append(word.word)
            total.set(total.get(0) + 1)
            if self.failures.get(word.word, 0) > 0:
                self.failures[word.word] -= 1
                raise OSError(f"{word.word} is away")
            return Count(word.word, total.get(0))

        self.count = self.app.service(reads=self.words, writes=self.counts, **options)(count)

    def words_counted(self, driver):
        return [(found.word, found.count) for found in driver.read(self.counts)]


TWICE = on_error(process=retry(2, first="1s", longest="1m"))


def test_a_record_is_tried_again_and_its_partition_waits_in_order():
    app = Flaky(errors=TWICE)
    driver = Driver(app.app)
    app.failures = {"b": 2}
    driver.pipe(app.words, Word("a"), Word("b"), Word("c"))
    assert app.words_counted(driver) == [("a", 1)]
    assert driver.counts(app.count) == Counts(received=1, passed=1, written=1)
    driver.advance_clock("999ms")
    assert app.calls == ["a", "b"]
    driver.advance_clock("1ms")
    assert app.calls == ["a", "b", "b"]
    driver.advance_clock("2s")
    assert app.words_counted(driver) == [("b", 1), ("c", 1)]
    assert driver.dead_letters() == []


def test_what_fails_too_often_is_dead_lettered_and_the_stream_goes_on():
    app = Flaky(errors=TWICE)
    driver = Driver(app.app)
    app.failures = {"b": 9}
    driver.pipe(app.words, Word("b"), Word("c"))
    driver.advance_clock("10s")
    assert app.calls == ["b", "b", "b", "c"]
    (letter,) = driver.dead_letters()
    assert "OSError: b is away" in letter.reason
    assert str(letter.coordinates) == "words[0]@0"
    assert app.words_counted(driver) == [("c", 1)]


def test_a_crash_while_a_record_waits_loses_nothing():
    app = Flaky(errors=TWICE)
    driver = Driver(app.app)
    app.failures = {"b": 1}
    driver.pipe(app.words, Word("a"), Word("b"), Word("c"))
    driver.crash()
    driver.restart()
    assert app.words_counted(driver) == [("a", 1), ("b", 1), ("c", 1)]


def test_a_service_may_stop_at_what_fails_and_names_and_carries_the_record():
    app = Flaky(errors=on_error(process="stop"))
    driver = Driver(app.app)
    app.failures = {"b": 1}
    with pytest.raises(UserCodeError, match="count raised OSError: b is away") as caught:
        driver.pipe(app.words, Word("a"), Word("b"))
    error = caught.value
    assert (error.topic, error.partition, error.offset) == ("words", 0, 1)
    assert error.record == Word("b")
    driver.crash()
    driver.restart()
    assert app.words_counted(driver) == [("a", 1), ("b", 1)]


def test_a_service_may_stop_after_its_retries():
    app = Flaky(errors=on_error(process=retry(1, first="1s", then="stop")))
    driver = Driver(app.app)
    app.failures = {"a": 9}
    driver.pipe(app.words, Word("a"))
    with pytest.raises(UserCodeError, match="a is away"):
        driver.advance_clock("1s")


def test_a_service_may_stop_at_bytes_that_do_not_decode():
    app = Flaky(errors=on_error(decode="stop"))
    driver = Driver(app.app)
    with pytest.raises(UserCodeError, match=r"count stops at words\[0\]@0: not a Word") as caught:
        driver.pipe_raw(app.words, b"a", b"{broken")
    assert caught.value.record == b"{broken"


def test_an_output_that_is_refused_has_a_policy_of_its_own():
    app = App("demo")
    words = app.stream("words", Word)
    short = app.stream("short", Word, max_record="20B")

    def copy(word: Word) -> Iterable[Word]:
        yield word

    app.service(reads=words, writes=short, name="keeps", errors=on_error(process="stop"))(copy)
    driver = Driver(app)
    driver.pipe(words, Word("a" * 30))
    (letter,) = driver.dead_letters()
    assert letter.code == "data.too-large"

    app = App("demo")
    words = app.stream("words", Word)
    short = app.stream("short", Word, max_record="20B")
    app.service(reads=words, writes=short, name="stops", errors=on_error(produce="stop"))(copy)
    with pytest.raises(UserCodeError, match="its stream takes 20"):
        Driver(app).pipe(words, Word("a" * 30))


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


def test_a_timer_that_fails_is_tried_again_before_any_other_goes_off():
    app = App("demo")
    readings, out = app.stream("readings", Reading), app.stream("counts", Count, partitions=1)
    failures = [OSError("away"), OSError("away")]

    @app.service(reads=readings, writes=out, errors=TWICE)
    class Ring:
        def process(self, reading: Reading, timers: Timers) -> None:
            timers.set("one", at=reading.at + timedelta(seconds=1))
            timers.set("two", at=reading.at + timedelta(seconds=2))

        def on_timer(self, timer: Timer) -> Count:
            if timer.name == "one" and failures:
                raise failures.pop()
            return Count(timer.name, 1)

    driver = Driver(app)
    driver.pipe(readings, Reading("a", START_AT))
    driver.advance_event_time(START_AT + timedelta(seconds=5))
    assert driver.read(out) == []
    driver.crash()
    driver.restart()
    driver.advance_clock("1s")
    driver.advance_clock("2s")
    assert [found.word for found in driver.read(out)] == ["one", "two"]
    assert driver.dead_letters() == []


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        (ErrorPolicy(decode=retry(1)), "decode: the same bytes fail the same way"),
        (ErrorPolicy(produce="ignore"), "produce: 'ignore' is not one of dead_letter, stop"),
        (ErrorPolicy(process="skip"), "process: 'skip' is not one of"),
        (ErrorPolicy(process=retry(0)), "a retry needs at least one time"),
        (ErrorPolicy(process=retry(1, then="skip")), "process: 'skip' is not one of"),
    ],
)
def test_a_policy_that_cannot_work_is_a_problem(errors, text):
    (problem,) = check(Flaky(errors=errors).app.graph)
    assert problem.code == "service.errors"
    assert text in problem.message


def test_an_unknown_delivery_is_a_problem():
    (problem,) = check(Flaky(delivery="twice").app.graph)
    assert (problem.code, "exactly_once" in problem.hint) == ("service.delivery", True)


def test_waits_double_up_to_the_longest():
    policy = retry(9, first="100ms", longest="1s")
    waits = [policy.delay(attempt) / timedelta(milliseconds=1) for attempt in (1, 2, 3, 4, 5, 500)]
    assert waits == [100, 200, 400, 800, 1000, 1000]


def test_at_most_once_nothing_is_done_twice_and_a_crash_may_lose_it():
    app = Flaky(delivery="at_most_once")
    driver = Driver(app.app, auto_commit=False)
    driver.pipe(app.words, Word("a"), Word("a"))
    assert app.words_counted(driver) == [("a", 1), ("a", 2)]
    driver.crash()
    driver.restart()
    assert app.calls == ["a", "a"]
    driver.pipe(app.words, Word("a"))
    assert app.words_counted(driver) == [("a", 1)]
    driver.commit()
    driver.crash()
    driver.restart()
    driver.pipe(app.words, Word("a"))
    assert app.words_counted(driver) == [("a", 2)]


def test_at_most_once_a_clean_stop_gives_back_what_waits_behind_a_retry():
    app = Flaky(delivery="at_most_once", errors=TWICE)
    driver = Driver(app.app)
    app.failures = {"b": 1}
    driver.pipe(app.words, *(Word(word) for word in "abcd"))
    driver.stop()
    driver.restart()
    driver.advance_clock("1m")
    assert sorted(app.words_counted(driver)) == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
    assert app.calls == ["a", "b", "b", "c", "d"]


def test_at_most_once_the_first_record_of_a_batch_is_given_back_too():
    app = Flaky(delivery="at_most_once", errors=TWICE)
    driver = Driver(app.app)
    app.failures = {"a": 1}
    driver.pipe(app.words, Word("a"), Word("b"))
    driver.stop()
    driver.restart()
    assert app.words_counted(driver) == [("a", 1), ("b", 1)]
