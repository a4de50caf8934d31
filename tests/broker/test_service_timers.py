"""Timers on a real broker: by the clock without records, and over a kill."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.backbone.logreader import LogReader

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("service_worker.py"))))


@pytest.fixture
def app(kafka, topic):
    return kit.declared(topic.name("app"), kafka)


def rung(kafka, app):
    return sorted((raw.key or b"").decode() for raw in LogReader(kafka).read(app.bells.topic.name))


def test_a_timer_by_the_clock_goes_off_without_any_record(kafka, app):
    with kit.InThread(kafka, app, "remind") as running:
        kit.eventually(lambda: running.state("remind") == "running", what="it runs")
        kit.send_words(kafka, app, ["a", "b"])
        kit.eventually(lambda: rung(kafka, app) == ["a", "b"], what="both timers have gone off")
        kit.eventually(
            lambda: running.last("remind").detail.get("timers") == "0", what="none is left"
        )
    assert running.error is None


def test_timers_of_a_killed_worker_go_off_once_in_the_next(kafka, app):
    words = [f"w{number}" for number in range(50)]
    kit.send_words(kafka, app, words)
    with kit.InProcess(kafka, app, "remind") as worker:
        kit.eventually(
            lambda: kit.committed_records(kafka, app.reminders) > 0, what="timers are committed"
        )
        worker.kill()
    with kit.InProcess(kafka, app, "remind"):
        kit.eventually(lambda: len(rung(kafka, app)) >= len(words), what="all have gone off")
    assert rung(kafka, app) == sorted(words)
