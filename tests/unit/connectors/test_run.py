import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.connectors import keyboard, run_source
from penstock.connectors.connector import Item
from penstock.core.settings.settings import KafkaSettings, ServiceSettings, Settings
from penstock.errors import ConfigurationError, StuckError
from penstock.machine.places import Places


@record()
class Line:
    text: str


class Nothing:
    """A connector that cannot do anything."""

    interactive = False

    def describe(self) -> str:
        return "nothing"


@pytest.fixture
def site(tmp_path):
    return Site(
        settings=Settings(),
        places=Places(tmp_path),
        connection=Connection(bootstrap="127.0.0.1:1", settings=KafkaSettings()),
        stop=threading.Event(),
        report=lambda _: None,
    )


def test_a_source_that_is_not_there_is_an_error_with_the_nearest_name(site):
    app = App("test")
    app.source("typed", keyboard(), into=app.stream("lines", Line))
    with pytest.raises(ConfigurationError, match="no source 'typd'") as caught:
        run_source(app.graph, "typd", site)
    assert caught.value.hint == "did you mean 'typed'?"


def test_a_connector_that_can_do_nothing_is_refused(site):
    app = App("test")
    app.source("odd", Nothing(), into=app.stream("lines", Line))
    with pytest.raises(ConfigurationError, match="Nothing can neither run nor be opened"):
        run_source(app.graph, "odd", site)


class Once:
    """A connector that gives one line."""

    interactive = False

    def describe(self) -> str:
        return "one line"

    def run(self, feed) -> None:
        feed.put(Item(b"one"))


def test_a_source_whose_parse_hangs_is_told_and_left_when_it_is_to_stop(site):
    begun, release, reports = threading.Event(), threading.Event(), []

    def parse(text: str) -> Line:
        begun.set()
        release.wait(60)
        return Line(text)

    app = App("test")
    app.source("one", Once(), into=app.stream("lines", Line), parse=parse)
    soon = ServiceSettings(stop_timeout=timedelta(milliseconds=100))
    hung = replace(site, settings=Settings(services=soon), report=reports.append)
    threading.Thread(target=lambda: begun.wait(60) and hung.stop.set()).start()
    try:
        with pytest.raises(StuckError, match="did not stop within") as caught:
            run_source(app.graph, "one", hung)
    finally:
        release.set()
    assert "one is at test_run.py:" in caught.value.detail
    assert ", in parse, with item 0, since " in caught.value.detail
    assert reports[-1].state == "failed"


def test_declaring_sources_loads_neither_the_kafka_client_nor_spark():
    program = (
        "import sys, penstock, penstock.connectors;"
        "sys.exit(any(name in sys.modules for name in ('confluent_kafka', 'pyspark')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], check=False, timeout=120)
    assert finished.returncode == 0
