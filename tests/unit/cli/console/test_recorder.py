"""What the run remembers: an hour of numbers and what happened, sent in bounded pieces."""

from datetime import UTC, datetime

import pytest

from penstock.cli.console.look import Look, keyed
from penstock.cli.console.recorder import Recorder
from penstock.core.status.history import EVERY_SECONDS, KEPT
from penstock.core.status.status import PartStatus, RunStatus
from penstock.errors import ConfigurationError

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Looks:
    """What runs, at moments that a test chooses."""

    def __init__(self, parts=1):
        self.at = 100.0
        self.parts = parts
        self.metrics = {}

    def __call__(self):
        parts = tuple(
            PartStatus(
                process=f"part-{number}",
                part=f"part-{number}",
                kind="service",
                state="running",
                since_seconds=1.0,
                rate_in=self.at,
                lag=number,
                metrics=self.metrics,
            )
            for number in range(self.parts)
        )
        run = RunStatus(app="plant", command="dev", pid=1, started_at=AT, parts=parts)
        return Look(self.at, [run], keyed([run], several=False))


@pytest.fixture
def looks():
    return Looks()


def test_numbers_are_sampled_every_few_seconds_and_continued_after_a_moment(looks):
    recorder = Recorder(looks)
    for second in range(100, 121):
        looks.at = float(second)
        recorder.look()
    found = recorder.history()
    assert found["at"] == [100.0, 105.0, 110.0, 115.0, 120.0]
    assert found["series"]["part-0"]["in"] == found["at"]
    assert recorder.history(after=112.0)["at"] == [115.0, 120.0]
    assert recorder.now()["at"] == 120.0


def test_latency_is_the_mean_of_what_came_since_the_last_sample(looks):
    recorder = Recorder(looks)
    for count, total in ((10.0, 1.0), (30.0, 11.0), (30.0, 11.0)):
        looks.metrics = {"end_to_end_seconds_count": count, "end_to_end_seconds_sum": total}
        recorder.look()
        looks.at += EVERY_SECONDS
    assert recorder.history()["series"]["part-0"]["latency"] == [0.1, 0.5, None]


def test_many_parts_are_sent_with_fewer_samples_and_the_newest_is_among_them():
    looks = Looks(parts=100)
    recorder = Recorder(looks)
    for _ in range(KEPT):
        recorder.look()
        looks.at += EVERY_SECONDS
    found = recorder.history()
    numbers = sum(len(column) for each in found["series"].values() for column in each.values())
    assert numbers <= 60_000
    assert found["every_seconds"] > EVERY_SECONDS
    assert found["at"][-1] == looks.at - EVERY_SECONDS


def test_one_waits_for_the_next_look_and_not_for_ever(looks):
    recorder = Recorder(looks)
    recorder.look()
    number, document = recorder.next(0, seconds=60.0)
    assert (number, document["summary"]) == (1, "its part is well")
    assert recorder.next(number, seconds=0.01)[0] == number


def test_metrics_of_a_part_come_with_what_they_say(looks):
    looks.metrics = {"state_keys": 3.0, "process_seconds_count": 2.0}
    recorder = Recorder(looks)
    recorder.look()
    found = recorder.metrics("part-0")
    assert found["metrics"] == {"state_keys": 3.0, "process_seconds_count": 2.0}
    assert found["about"]["process_seconds"] == "how long a record takes to be handled"
    with pytest.raises(ConfigurationError, match="does not run here"):
        recorder.metrics("other")


def test_a_clock_that_is_put_back_stops_no_samples(looks):
    recorder = Recorder(looks)
    for at in (100.0, 105.0, 50.0, 55.0):
        looks.at = at
        recorder.look()
    assert recorder.history()["at"] == [100.0, 105.0, 50.0, 55.0]
