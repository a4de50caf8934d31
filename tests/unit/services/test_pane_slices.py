"""Windows of very many keys that end together, in a task whose time is up between two slices."""

from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from penstock import App, record
from penstock.aggregates import count
from penstock.core.panes import waiting
from penstock.core.records.codec import JsonCodec
from penstock.services.step import panes as panestep
from penstock.services.task.task import Task
from penstock.testing.memorylog import MemoryDelivery, MemoryLog
from penstock.windows import fixed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
READINGS = ("readings", 0)
KEYS = 50
PAST = 0.0


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


class Bench:
    """Windows as a service, on a log in memory."""

    def __init__(self):
        self.app = App("demo")
        readings = self.app.stream("readings", Reading, partitions=1)
        windowed = readings.window(fixed("1m"), by="device")
        self.app.stream("panes", windowed.aggregate(n=count()), on="services", partitions=1)
        self.codec = JsonCodec(readings.record)
        self.log = MemoryLog(self.app.graph.topics(), clock=lambda: NOON)
        self.task = self.make()

    def make(self):
        task = Task(
            self.app.graph,
            self.app.graph.part("panes.windows"),
            number=0,
            starts={READINGS: self.log.committed("demo.panes.windows").get(READINGS, 0)},
            delivery=MemoryDelivery(self.log, group="demo.panes.windows"),
            clock=lambda: NOON,
        )
        changelog = self.app.graph.changelog(self.app.graph.part("panes.windows")).name
        for raw in self.log.read((changelog, 0)):
            task.step.states.apply(raw.key(), raw.value())
        task.open()
        return task

    def send(self, *devices, minutes=0):
        for device in devices:
            made = Reading(device, NOON + timedelta(minutes=minutes))
            value = self.codec.encode(made)
            self.log.append("readings", key=self.codec.key(made), value=value, partition=0)

    def turn(self, *, deadline=PAST):
        """Handle what there is as the worker does, the time always being up."""
        self.task.release()
        if records := self.log.read(READINGS, self.task.positions[READINGS]):
            self.task.handle(READINGS, records, deadline=deadline)
        self.task.tick(deadline=deadline)
        self.task.commit()

    def panes(self):
        return [raw.key().decode() for raw in self.log.read(("panes", 0))]


@pytest.mark.parametrize("restarts", [False, True], ids=["one task", "a new task each turn"])
def test_windows_that_end_together_are_given_in_slices_each_of_which_is_committed(
    restarts, monkeypatch
):
    monkeypatch.setattr(panestep, "DUE_KEYS", 5)
    monkeypatch.setattr(waiting, "CHUNK_KEYS", 5)
    bench = Bench()
    devices = [f"d{number}" for number in range(KEYS)]
    bench.send(*devices)
    bench.turn()
    bench.send("last", minutes=2)
    seen = []
    for _ in range(KEYS):
        bench.turn()
        seen.append(len(bench.panes()))
        if restarts:
            bench.task.close()
            bench.task = bench.make()
        if len(seen) == 3:
            # It is handled when all windows that are due were given, and late then.
            bench.send("d1", minutes=1)
    assert sorted(bench.panes()) == sorted(devices)
    steps = {later - before for before, later in zip([0, *seen], seen, strict=False)}
    assert max(steps) <= 10
    assert bench.log.committed("demo.panes.windows") == {READINGS: KEYS + 2}
    bench.send("last", minutes=9)
    bench.turn(deadline=inf)
    assert sorted(bench.panes()) == sorted([*devices, "last"])
    assert bench.task.wakes_at() is None
