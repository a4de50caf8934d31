"""Async services in the driver: several calls at a time, in order per key, exactly once."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from penstock import App, Context, State, Timer, Timers, on_error, record, retry
from penstock.core.rules.check import check
from penstock.core.status.report import Counts
from penstock.errors import UserCodeError
from penstock.services.step import concurrent as asyncstep
from penstock.state import Opening
from penstock.testing import Driver
from penstock.testing.clock import START_AT


@record(key="word", time="at")
class Word:
    word: str
    number: int = 0
    at: datetime = START_AT


@record(key="word")
class Count:
    word: str
    count: int


class Slow:
    """An application with an async service that says what it does."""

    def __init__(self, **options):
        self.app = App("demo")
        self.words = self.app.stream("words", Word, partitions=1)
        self.counts = self.app.stream("counts", Count, partitions=1)
        self.log = []
        self.under_way = self.most = 0
        self.failures = {}

        async def count(word: Word, total: State[int], context: Context) -> Count:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.log.append(("begin", word.word, word.number))
            try:
                before = total.get(0)
                for _ in range(3 - word.number % 3):
                    await asyncio.sleep(0)
                total.set(before + 1)
                await asyncio.sleep(0)
                if self.failures.get(word.word, 0) > 0:
                    self.failures[word.word] -= 1
                    raise OSError(f"{word.word} at {context.coordinates.offset}")
                return Count(word.word, total.get(0))
            finally:
                self.under_way -= 1
                self.log.append(("end", word.word, word.number))

        self.count = self.app.service(reads=self.words, writes=self.counts, **options)(count)

    def counted(self, driver):
        return [(found.word, found.count) for found in driver.read(self.counts)]


def test_calls_overlap_up_to_the_limit_and_outputs_keep_the_order_of_the_records():
    app = Slow(concurrency=4)
    driver = Driver(app.app)
    words = [Word(f"w{number % 10}", number) for number in range(50)]
    driver.pipe(app.words, *words)
    assert app.most == 4
    expected, seen = [], {}
    for word in words:
        seen[word.word] = seen.get(word.word, 0) + 1
        expected.append((word.word, seen[word.word]))
    assert app.counted(driver) == expected
    assert driver.counts(app.count) == Counts(received=50, passed=50, written=50)


def test_records_of_one_key_come_one_after_the_other():
    app = Slow()
    driver = Driver(app.app)
    driver.pipe(app.words, Word("a", 0), Word("b", 1), Word("a", 2), Word("a", 3))
    of_a = [(what, number) for what, word, number in app.log if word == "a"]
    assert of_a == [(what, n) for n in (0, 2, 3) for what in ("begin", "end")]
    assert app.log[:2] == [("begin", "a", 0), ("begin", "b", 1)]


def test_a_slow_call_holds_up_nothing_but_the_end_of_its_batch():
    app = App("demo")
    words = app.stream("words", Word, partitions=1)
    counts = app.stream("counts", Count, partitions=1)
    done = []
    most_done = asyncio.Event()

    @app.service(reads=words, writes=counts, concurrency=2)
    async def count(word: Word) -> Count:
        if word.word == "slow":
            await most_done.wait()
        done.append(word.word)
        if len(done) == 40:
            most_done.set()
        return Count(word.word, word.number)

    driver = Driver(app)
    driver.pipe(words, Word("slow", 0), *(Word(f"w{n}", n) for n in range(1, 50)))
    assert done.index("slow") >= 40
    assert [found.count for found in driver.read(counts)] == list(range(50))


def test_a_call_that_fails_takes_back_its_own_state_and_no_other():
    app = Slow()
    driver = Driver(app.app)
    app.failures = {"a": 1}
    driver.pipe(app.words, Word("a"), Word("b"), Word("a"), Word("b"))
    assert app.counted(driver) == [("b", 1), ("a", 1), ("b", 2)]
    (letter,) = driver.dead_letters()
    assert "OSError: a at 0" in letter.reason
    assert driver.counts(app.count) == Counts(received=4, passed=3, dead_lettered=1, written=3)


def test_garbage_between_calls_is_dead_lettered_in_its_place():
    app = Slow()
    driver = Driver(app.app)
    driver.pipe_raw(app.words, b"a", b"{broken")
    driver.pipe(app.words, Word("a"))
    assert [letter.code for letter in driver.dead_letters()] == ["data.not-json"]
    assert app.counted(driver) == [("a", 1)]


def test_a_crash_and_a_restart_count_exactly_once():
    app = Slow()
    driver = Driver(app.app, auto_commit=False)
    driver.pipe(app.words, Word("a"), Word("b"))
    driver.commit()
    driver.pipe(app.words, Word("a"))
    driver.crash()
    driver.restart()
    driver.commit()
    assert app.counted(driver) == [("a", 1), ("b", 1), ("a", 2)]


def test_a_call_may_be_tried_again_when_the_clock_of_the_test_says_so():
    app = Slow(errors=on_error(process=retry(3, first="1h", longest="1h")))
    driver = Driver(app.app)
    app.failures = {"a": 2, "b": 9}
    driver.pipe(app.words, Word("c"), Word("a"), Word("b"), Word("a"), Word("c"))
    assert app.counted(driver) == [("c", 1)]
    driver.advance_clock("2h")
    assert app.counted(driver) == [("a", 1)]
    assert driver.dead_letters() == []
    driver.advance_clock("3h")
    assert app.counted(driver) == [("a", 2), ("c", 2)]
    (letter,) = driver.dead_letters()
    assert letter.key == b"b"
    assert driver.counts(app.count) == Counts(received=5, passed=4, dead_lettered=1, written=4)


@pytest.mark.parametrize("policy", [{"process": retry(1)}, {"produce": "stop"}])
@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_records_behind_one_that_is_given_up_are_all_handled(policy, concurrency):
    app = Slow(errors=on_error(**policy), concurrency=concurrency)
    driver = Driver(app.app)
    app.failures = {"b": 9}
    driver.pipe(app.words, *(Word(f"{word}", number) for number, word in enumerate("abcdacda")))
    driver.advance_clock("1m")
    expected = [("a", 1), ("c", 1), ("d", 1), ("a", 2), ("c", 2), ("d", 2), ("a", 3)]
    assert app.counted(driver) == expected
    assert [letter.key for letter in driver.dead_letters()] == [b"b"]


def test_a_call_that_is_tried_again_holds_its_partition_and_no_other():
    app = Slow(errors=on_error(process=retry(3, first="10s")))
    driver = Driver(app.app, partitions=8)
    app.failures = {"w0": 1}
    driver.pipe(app.words, *(Word(f"w{number}") for number in range(20)))
    first = app.counted(driver)
    assert 0 < len(first) < 20
    driver.advance_clock("10s")
    assert sorted(first + app.counted(driver)) == sorted((f"w{n}", 1) for n in range(20))


def test_what_calls_behind_one_that_is_tried_again_did_to_state_is_taken_back():
    app = Slow(errors=on_error(process=retry(3, first="10s")))
    driver = Driver(app.app, partitions=1)
    app.failures = {"a": 1}
    driver.pipe(app.words, Word("b"), Word("a"), Word("b"), Word("b"))
    assert driver.state(app.count, "b") == 1
    driver.crash()
    driver.restart()
    driver.advance_clock("10s")
    assert app.counted(driver) == [("b", 1), ("a", 1), ("b", 2), ("b", 3)]


async def cancel_an_inner_task():
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


async def cancel_itself():
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def end_the_process():
    raise SystemExit(0)


async def end_as_a_generator_does():
    raise GeneratorExit


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "fails", [cancel_an_inner_task, cancel_itself, end_the_process, end_as_a_generator_does]
)
def test_whatever_a_call_raises_is_the_end_of_its_record_alone(fails, first):
    app = App("demo")
    words = app.stream("words", Word, partitions=1)
    counts = app.stream("counts", Count, partitions=1)

    @app.service(reads=words, writes=counts, concurrency=2)
    class Total:
        async def process(self, word: Word, total: State[int], timers: Timers) -> Count:
            total.set(total.get(0) + 1)
            if not first:
                await asyncio.sleep(0)
            if word.number == 1:
                await fails()
            if word.number == 3:
                timers.set("late", at=word.at)
            return Count(word.word, total.get(0))

        async def on_timer(self, timer: Timer, total: State[int]) -> Count:
            total.set(-1)
            await fails()
            return Count(timer.key, 0)

    driver = Driver(app)
    driver.pipe(words, *(Word("a", number) for number in range(5)), Word("b"))
    assert [found.count for found in driver.read(counts)] == [1, 2, 3, 4, 1]
    letters = driver.dead_letters()
    assert len(letters) == 2
    assert "raised" in letters[0].reason
    assert "on timer 'late' raised" in letters[1].reason
    assert driver.counts(Total).dead_lettered == 1
    assert driver.state(Total, "a") == 4


def test_a_task_that_a_call_left_behind_cannot_end_the_process():
    app = App("demo")
    words = app.stream("words", Word, partitions=1)

    left = []

    @app.service(reads=words, name="leave")
    async def leave(word: Word) -> None:
        left.append(asyncio.ensure_future(end_the_process()))
        await asyncio.sleep(60)

    with pytest.raises(UserCodeError, match="leave left a task running that raised SystemExit"):
        Driver(app).pipe(words, Word("a", 1))
    assert isinstance(left[0].exception(), SystemExit)


def test_a_call_may_stop_the_service():
    app = Slow(errors=on_error(process="stop"))
    driver = Driver(app.app)
    app.failures = {"b": 1}
    with pytest.raises(UserCodeError, match="b at 1") as caught:
        driver.pipe(app.words, Word("a"), Word("b"))
    assert caught.value.record == Word("b")
    driver.crash()
    driver.restart()
    assert app.counted(driver) == [("a", 1), ("b", 1)]


def test_a_call_that_takes_too_long_is_a_failure():
    app = App("demo")
    words = app.stream("words", Word)

    @app.service(reads=words, timeout="10ms")
    async def sleep(word: Word) -> None:
        await asyncio.sleep(word.number)

    driver = Driver(app)
    driver.pipe(words, Word("a", 60), Word("b", 0))
    (letter,) = driver.dead_letters()
    assert letter.reason.endswith("took longer than its timeout of 0.01s")
    assert letter.key == b"a"


def test_a_batch_that_takes_too_long_is_finished_later(monkeypatch):
    monkeypatch.setattr(asyncstep, "LONGEST_RUN_SECONDS", -1.0)
    app = Slow(concurrency=1)
    driver = Driver(app.app)
    driver.pipe(app.words, *(Word(f"w{number}") for number in range(10)))
    assert len(app.counted(driver)) == 10


def test_an_object_is_opened_awaited_and_closed_in_one_event_loop():
    app = App("demo")
    words, counts = app.stream("words", Word, partitions=1), app.stream("counts", Count)
    loops = set()

    @app.service(reads=words, writes=counts)
    class Fetch:
        async def open(self, _: Opening) -> None:
            self.waiting = asyncio.Queue()
            loops.add(asyncio.get_running_loop())

        async def process(self, word: Word, timers: Timers) -> AsyncIterator[Count]:
            loops.add(asyncio.get_running_loop())
            timers.set("later", at=word.at + timedelta(minutes=1))
            await self.waiting.put(word)
            yield Count(word.word, 1)
            yield Count((await self.waiting.get()).word, 2)

        async def on_timer(self, timer: Timer) -> Count:
            loops.add(asyncio.get_running_loop())
            return Count(timer.key, 3)

        async def close(self) -> None:
            loops.add(asyncio.get_running_loop())

    driver = Driver(app)
    driver.pipe(words, Word("a"))
    driver.advance_event_time(START_AT + timedelta(minutes=1))
    assert [found.count for found in driver.read(counts)] == [1, 2, 3]
    driver.stop()
    assert len(loops) == 1


def test_event_timers_go_off_between_the_records_they_stand_between():
    app = App("demo")
    words, counts = (
        app.stream("words", Word, partitions=1),
        app.stream("counts", Count, partitions=1),
    )

    @app.service(reads=words, writes=counts)
    class Silence:
        async def process(self, _: Word, timers: Timers) -> None:
            await asyncio.sleep(0)
            timers.set("silent", after="10m")

        def on_timer(self, timer: Timer) -> Count:
            return Count(timer.key, (timer.due_at - START_AT) // timedelta(minutes=1))

    driver = Driver(app)
    minutes = [0, 9, 18, 40, 41]
    driver.pipe(words, *(Word("a", at=START_AT + timedelta(minutes=m)) for m in minutes))
    assert [found.count for found in driver.read(counts)] == [28]
    driver.pipe(
        words, *(Word(w, at=START_AT + timedelta(minutes=m)) for w, m in [("b", 42), ("a", 90)])
    )
    assert [found.count for found in driver.read(counts)] == [51, 52]


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"timeout": "0s"}])
def test_limits_that_allow_nothing_are_a_problem(options):
    assert [problem.code for problem in check(Slow(**options).app.graph)] == ["service.concurrency"]


def test_a_service_let_go_while_another_loop_runs_leaves_nothing_behind(monkeypatch):
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    def handled():
        app = App("demo")
        words = app.stream("words", Word)

        @app.service(reads=words)
        async def hear(word: Word) -> None:
            await asyncio.sleep(0)

        Driver(app).pipe(words, Word("a", 1))

    gc.collect()
    gc.disable()
    try:
        handled()

        async def collect():
            gc.collect()

        asyncio.run(collect())
    finally:
        gc.enable()
    assert complaints == []
