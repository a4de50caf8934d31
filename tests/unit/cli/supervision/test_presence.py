"""A run makes itself known, and gets along with others."""

import http.client
from argparse import Namespace
from types import SimpleNamespace

import pytest

from penstock import App
from penstock.cli.screen.terminal import Terminal
from penstock.cli.session import Session
from penstock.cli.status.overview import look
from penstock.cli.supervision.board import Board
from penstock.cli.supervision.plan import Unit
from penstock.cli.supervision.presence import announce_run
from penstock.core.status.report import PartReport
from penstock.machine.ports import free_ports
from penstock.machine.process.registry import Registry


@pytest.fixture
def run(tmp_path):
    """Return what makes a run with one part known."""

    def known_run(part, **settings):
        chosen = {"home": str(tmp_path), **settings}
        arguments = Namespace(config=None, profile=None, settings=list(chosen.items()))
        session = Session(arguments, Terminal())
        session.application = SimpleNamespace(graph=App("plant").graph)
        board = Board([Unit("0", "service", (part,))], clock=lambda: 0.0)
        board.take(PartReport(part=part, kind="service", state="running", at=0.0), process="0")
        notes = []
        return announce_run(session, board, command="run", note=notes.append), notes

    return known_run


def test_a_run_is_found_while_it_lasts(run, tmp_path):
    registry = Registry(tmp_path / "runs")
    block, notes = run("count")
    with block:
        (found,) = look(registry).runs
        assert (found.app, [part.part for part in found.parts]) == ("plant", ["count"])
        assert found.healthy
    assert look(registry).empty
    assert notes == []


def test_a_port_that_another_run_of_the_project_has_is_left_to_it(run, tmp_path):
    port = str(free_ports(1)[0])
    first, notes = run("count", **{"http.port": port})
    second, more = run("split", **{"http.port": port})
    with first, second:
        assert len(look(Registry(tmp_path / "runs")).runs) == 2
    assert notes == [f"metrics, health and status on http://127.0.0.1:{port}"]
    assert more[0].endswith(f" ({port} is in use by another run)")


def test_where_nothing_can_be_written_it_runs_and_says_that_it_is_not_found(run, tmp_path):
    (tmp_path / "runs").write_text("no directory")
    block, notes = run("count")
    with block:
        assert notes[0].startswith("penstock status cannot find this run: ")


@pytest.mark.parametrize(
    ("settings", "served"),
    [
        ({}, True),
        ({"http.hosts": "metrics.example"}, False),
        ({"http.hosts": "metrics.example", "http.console": "on"}, True),
        ({"http.console": "off"}, False),
    ],
)
def test_the_console_is_not_there_where_a_proxy_may_ask_unless_that_is_set(
    run, tmp_path, settings, served
):
    block, _ = run("count", **settings)
    with block:
        (entry,) = Registry(tmp_path / "runs").entries()
        codes = {}
        for path in ("/", "/v1/console/now", "/status"):
            connection = http.client.HTTPConnection("127.0.0.1", entry.port, timeout=60)
            connection.request("GET", path)
            codes[path] = connection.getresponse().status
            connection.close()
    expected = 200 if served else 404
    assert codes == {"/": expected, "/v1/console/now": expected, "/status": 200}
