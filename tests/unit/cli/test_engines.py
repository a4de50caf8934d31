import threading
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.cli.engines import run_engines
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.errors import ConfigurationError, StuckError
from penstock.machine.places import Places

SHORT = timedelta(milliseconds=1)
LONG = timedelta(seconds=60)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        settings=Settings(),
        places=Places(tmp_path),
        connection=Connection("127.0.0.1:1", KafkaSettings()),
        stop=threading.Event(),
        report=lambda _: None,
    )


def until_stopped(site: Site) -> None:
    site.stop.wait()


def failing(_: Site) -> None:
    raise ConfigurationError("no", code="x.y")


def test_a_part_that_does_not_stop_is_named_and_not_waited_for(site: Site) -> None:
    site.stop.set()
    never = threading.Event()
    runs = {"good": until_stopped, "hanging": lambda _: never.wait() and None}
    with pytest.raises(StuckError, match="hanging did not stop within"):
        run_engines(runs, site, limit=SHORT)
    never.set()


def test_a_part_that_fails_stops_the_others_and_a_hanging_one_does_not_hide_it(site: Site) -> None:
    never = threading.Event()
    with pytest.raises(ConfigurationError, match="no"):
        run_engines({"good": until_stopped, "bad": failing}, site, limit=LONG)
    with pytest.raises(StuckError) as caught:
        run_engines({"hanging": lambda _: never.wait() and None, "bad": failing}, site, limit=SHORT)
    assert "bad: no" in caught.value.detail
    never.set()


def test_parts_that_stop_in_time_end_well(site: Site) -> None:
    site.stop.set()
    run_engines({"one": until_stopped, "two": until_stopped}, site, limit=LONG)
