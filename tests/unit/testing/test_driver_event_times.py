"""Windows in the test driver beside a recount, over event times from the year 1 to 9999."""

import runpy
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import collect, count
from penstock.core.panes.windows import FixedWindows, SlidingWindows
from penstock.testing import Driver
from penstock.triggers import every_record, on_watermark
from penstock.windows import fixed, sliding

times = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "eventtimes.py")))
SEEDS, STEP = 300, 50


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    level: int = 0


def application(scene):
    app = App("demo")
    disorder = f"{scene.disorder // times.SECOND}s"
    readings = app.stream("readings", Reading, event_time=EventTime(disorder=disorder))
    of = scene.windows
    kind = SlidingWindows(of.size, of.period, of.offset)
    if of.size == of.period:
        kind = FixedWindows(of.size, of.offset)
    windowed = readings.where("level >= 0").window(kind, by="device").trigger(on_watermark())
    panes = app.stream(
        "panes", windowed.aggregate(n=count(), levels=collect("level")), on="services"
    )
    return app, readings, panes


def play(scene, *, crashes):
    """Let a scene happen, and compare what came of it with a recount."""
    app, readings, panes = application(scene)
    driver = Driver(app, partitions=1)
    found = Counter()
    for batch in scene.batches:
        driver.pipe(readings, *(Reading(each.device, each.at, each.level) for each in batch))
        if crashes:
            driver.crash()
            driver.restart()
        for pane in driver.read(panes):
            assert pane.n == len(pane.levels)
            found[pane.device, pane.window_start, pane.window_end, tuple(pane.levels)] += 1
    over, late = times.recount(scene)
    assert found == over
    told = Counter((each.group, each.happened_at) for each in driver.late_records())
    wanted = Counter()
    for (device, time, _, _), n in late.items():
        wanted[f'["{device}"]', times.instant(time)] += n
    assert told == wanted
    assert driver.dead_letters() == []


@pytest.mark.parametrize("seed", range(0, SEEDS, STEP))
def test_windows_are_those_of_a_recount_whatever_the_event_times(seed):
    for each in range(seed, seed + STEP):
        play(times.wild(each), crashes=each % 2 == 0)


def test_an_entry_of_the_ledger_says_the_watermark_that_the_record_was_late_for():
    app = App("demo")
    readings = app.stream("readings", Reading)
    windowed = readings.window(fixed("1m"), by="device").trigger(on_watermark())
    app.stream("panes", windowed.aggregate(n=count()), on="services")
    driver = Driver(app, partitions=1)
    at = times.instant(0)
    driver.pipe(readings, Reading("a", at), Reading("a", at + timedelta(hours=10)))
    driver.pipe(readings, Reading("a", at), Reading("a", at + timedelta(hours=20)))
    (late,) = driver.late_records()
    assert late.watermark_at == at + timedelta(hours=10)
    assert late.late_by_seconds == (late.watermark_at - late.happened_at).total_seconds()


def test_records_that_are_not_selected_move_the_watermark():
    app = App("demo")
    readings = app.stream("readings", Reading)
    windowed = readings.where("level > 100").window(fixed("1m"), by="device")
    panes = app.stream("panes", windowed.aggregate(n=count()), on="services")
    driver = Driver(app, partitions=1)
    at = times.instant(0)
    driver.pipe(readings, Reading("a", at, 200))
    assert driver.read(panes) == []
    driver.pipe(readings, Reading("a", at + timedelta(hours=10), 1))
    assert [pane.n for pane in driver.read(panes)] == [1]


def test_the_event_time_of_a_pane_whose_window_reaches_out_of_time_is_the_last_there_is():
    app = App("demo")
    readings = app.stream("readings", Reading)
    windowed = readings.window(sliding("10m", every="4m"), by="device")
    early = windowed.trigger(on_watermark(early=every_record()))
    panes = app.stream("panes", early.aggregate(n=count()), on="services")
    driver = Driver(app, partitions=1)
    driver.pipe(readings, Reading("a", times.instant(times.LAST)))
    found = driver.read(panes)
    assert found
    assert all(pane.at == pane.window_end == times.instant(times.LAST) for pane in found)
    assert driver.dead_letters() == []
