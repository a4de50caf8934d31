import subprocess
import sys
import threading

import pytest

from penstock import App, record
from penstock.backbone.connection import Connection
from penstock.backbone.site import Site
from penstock.connectors import keyboard, run_source
from penstock.core.settings import KafkaSettings, Settings
from penstock.errors import ConfigurationError
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


def test_declaring_sources_loads_neither_the_kafka_client_nor_spark():
    program = (
        "import sys, penstock, penstock.connectors;"
        "sys.exit(any(name in sys.modules for name in ('confluent_kafka', 'pyspark')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], check=False, timeout=30)
    assert finished.returncode == 0
