"""Timers of async services: as those of any service, however records come in batches."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, EventTime, State, Timer, Timers, on_error, record, retry
from penstock.state import ListState
from penstock.testing import Driver
from penstock.testing.clock import START_AT


@record(key="key", time="at")
class Sign:
    key: str
    at: datetime
    number: int = 0


@record(key="key")
class Told:
    key: str
    text: str


def minute(at):
    return (at - START_AT) // timedelta(minutes=1)


def sign(key, at, number=0):
    return Sign(key, START_AT + timedelta(minutes=at), number)


class Watch:
    """Timers before, after and at the records of its key; it fails on number 3."""

    def process(
        self, sign: Sign, seen: ListState[int], count: State[int], timers: Timers
    ) -> Iterable[Told]:
        seen.append(sign.number)
        count.set(count.get(0) + 1)
        timers.set("silent", at=sign.at + timedelta(minutes=10), payload=sign.number)
        if sign.number == 1:
            timers.set("at once", at=sign.at - timedelta(minutes=5))
        if sign.number == 2:
            timers.cancel("silent")
            timers.set("soon", after="2m")
        if sign.number == 3:
            raise ValueError(sign.number)
        return [Told(sign.key, f"{sign.key} {sign.number} {count.get()}")]

    def on_timer(self, timer: Timer, seen: ListState[int], timers: Timers) -> Told:
        if timer.name == "silent" and timer.payload == 0:
            timers.set("again", at=timer.due_at + timedelta(minutes=4))
        due, now = minute(timer.due_at), minute(timer.event_time_at)
        told = f"{timer.key} {timer.name} {due} {now} {seen.get()}"
        if timer.name == "soon":
            seen.clear()
        return Told("all", told)


class SlowWatch(Watch):
    """The same, and calls overlap: those of some keys take longer than others."""

    async def process(
        self, sign: Sign, seen: ListState[int], count: State[int], timers: Timers
    ) -> Iterable[Told]:
        for _ in range(ord(sign.key) % 4):
            await asyncio.sleep(0)
        given = super().process(sign, seen, count, timers)
        await asyncio.sleep(0)
        return given

    async def on_timer(self, timer: Timer, seen: ListState[int], timers: Timers) -> Told:
        await asyncio.sleep(0)
        return super().on_timer(timer, seen, timers)


def told_by(watch, batches, **options):
    app = App("demo")
    signs = app.stream("signs", Sign, partitions=1, event_time=EventTime(disorder="1m"))
    told = app.stream("told", Told, partitions=1)
    service = app.service(reads=signs, writes=told, name="watch", **options)(watch)
    driver = Driver(app)
    for batch in batches:
        driver.pipe(signs, *batch)
    driver.advance_event_time(timedelta(hours=2))
    found = [each.text for each in driver.read(told)]
    return found, [letter.coordinates for letter in driver.dead_letters()], driver.counts(service)


SIGNS = st.lists(st.builds(sign, st.sampled_from("abcd"), st.integers(0, 60), st.integers(0, 3)))


@settings(max_examples=settings().max_examples // 2)
@given(signs=SIGNS, cuts=st.sets(st.integers(0, 20)), concurrency=st.integers(1, 4))
def test_async_timers_go_off_where_others_do_whatever_the_batches(signs, cuts, concurrency):
    expected = told_by(Watch, [[each] for each in signs])
    at = [0, *sorted(cut for cut in cuts if cut < len(signs)), len(signs)]
    batches = [signs[start:end] for start, end in pairwise(at)]
    assert told_by(SlowWatch, batches, concurrency=concurrency) == expected
    assert told_by(SlowWatch, [signs], concurrency=concurrency) == expected


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_timer_that_is_tried_again_comes_before_the_records_behind_it(kind, together, failures):
    left = [failures]

    def tell(timer, count):
        if left[0]:
            left[0] -= 1
            raise OSError("away for a moment")
        return Told(timer.key, f"silent {minute(timer.due_at)} after {count.get()}")

    class Silence:
        def process(self, sign: Sign, count: State[int], timers: Timers) -> None:
            count.set(count.get(0) + 1)
            timers.set("silent", at=sign.at + timedelta(minutes=10))

        def on_timer(self, timer: Timer, count: State[int]) -> Told:
            return tell(timer, count)

    class SlowSilence:
        async def process(self, sign: Sign, count: State[int], timers: Timers) -> None:
            count.set(count.get(0) + 1)
            timers.set("silent", at=sign.at + timedelta(minutes=10))
            await asyncio.sleep(0)

        async def on_timer(self, timer: Timer, count: State[int]) -> Told:
            await asyncio.sleep(0)
            return tell(timer, count)

    app = App("demo")
    signs = app.stream("signs", Sign, partitions=1)
    told = app.stream("told", Told, partitions=1)
    subject = Silence if kind == "plain" else SlowSilence
    policy = on_error(process=retry(5, first="1s"))
    app.service(reads=signs, writes=told, name="silence", errors=policy)(subject)
    driver = Driver(app)
    come = [sign("a", 0), sign("b", 1), sign("a", 30), sign("b", 31), sign("a", 33)]
    for batch in [come] if together else [[each] for each in come]:
        driver.pipe(signs, *batch)
    driver.crash()
    driver.restart()
    driver.advance_clock("1m")
    driver.advance_event_time(timedelta(hours=1))
    texts = [(each.key, each.text) for each in driver.read(told)]
    assert texts == [
        ("a", "silent 10 after 1"),
        ("b", "silent 11 after 1"),
        ("b", "silent 41 after 2"),
        ("a", "silent 43 after 3"),
    ]
    assert driver.dead_letters() == []
