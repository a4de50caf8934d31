"""`penstock status`, with pages that are there and pages that are not."""

import io
import json
import socket
from contextlib import ExitStack
from datetime import UTC, datetime

import msgspec
import pytest

from penstock.cli.main import main
from penstock.cli.status.overview import Overview, look
from penstock.cli.status.page import StatusPage
from penstock.cli.status.table import fact_rows, part_rows, run_line
from penstock.core.status.exposition import series
from penstock.core.status.report import Counts
from penstock.core.status.status import PartStatus, RunStatus
from penstock.machine.process.registry import Registry, RunEntry

AT = datetime(2026, 1, 1, tzinfo=UTC)


def part(name, state="running", **given):
    told = {"process": name, "kind": "pipeline", "since_seconds": 65.0} | given
    return PartStatus(part=name, state=state, **told)


COUNT = part(
    "count",
    counts=Counts(received=12_345, passed=12_300, dead_lettered=45, written=7),
    rate_in=20.0,
    rate_out=1.0,
    lag=3,
    detail={"batch": "7 in 0.900s", "panes": "1 early, 2 on time, 0 late, 1 withdrawn"},
    metrics={series("panes_total", kind="early"): 1, "state_rows": 9},
)


class Project:
    """A project directory in which commands run, or seem to."""

    def __init__(self, home, stack):
        self.registry = Registry(home / "runs")
        self.stack = stack

    def enter(self, port, app="plant"):
        entry = RunEntry(app=app, command="dev", pid=42, port=port, started_at=AT)
        self.stack.enter_context(self.registry.entered(entry))

    def run(self, *parts, app="plant"):
        status = RunStatus(app=app, command="dev", pid=42, started_at=AT, parts=parts)
        page = self.stack.enter_context(StatusPage(lambda: status, port=0))
        self.enter(page.port, app=app)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield Project(tmp_path / ".penstock", stack)


def test_where_all_is_well_the_parts_and_what_they_say_are_shown(project, capsys):
    project.run(COUNT)
    assert main(["status"]) == 0
    shown = capsys.readouterr()
    heading, row, _, _, *facts = shown.out.splitlines()
    assert heading.split("\t")[:5] == ["app", "part", "process", "kind", "state"]
    assert row.split("\t") == [
        *("plant", "count", "count", "pipeline", "running", "1m05s"),
        *("12,345 (20/s)", "7 (1.0/s)", "3", "45", "0", ""),
    ]
    assert facts == [
        "plant\tcount\tcount\tbatch\t7 in 0.900s",
        "plant\tcount\tcount\tpanes\t1 early, 2 on time, 0 late, 1 withdrawn",
    ]
    assert "plant: penstock dev, process 42, up " in shown.err


def test_plain_runs_of_one_part_are_told_apart_by_their_process(project, capsys):
    project.run(msgspec.structs.replace(COUNT, process="0"))
    assert main(["status"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split("\t")[2] == "42"
    assert shown[4].startswith("plant\tcount\t42\tbatch")


def test_as_json_it_is_one_document(project, capsys):
    project.run(COUNT)
    assert main(["status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["healthy"], told["unanswered"]) == (True, [])
    (run,) = told["runs"]
    assert (run["app"], run["started_at"]) == ("plant", "2026-01-01T00:00:00Z")
    (part,) = run["parts"]
    assert part["counts"]["received"] == 12_345
    assert part["metrics"] == {"panes_total": {"early": 1}, "state_rows": 9}


def test_where_something_is_not_well_it_is_said_and_the_exit_code_is_1(project, capsys):
    project.run(COUNT, part("split", "degraded", reason="Kafka is away"))
    assert main(["status"]) == 1
    assert "plant split (split) is degraded: Kafka is away" in capsys.readouterr().err


def test_where_nothing_runs_it_is_said_and_the_exit_code_is_1(project, capsys):
    assert main(["status"]) == 1
    assert "nothing runs in .penstock" in capsys.readouterr().err
    assert main(["status", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"healthy": False, "runs": [], "unanswered": []}


def test_one_application_can_be_asked_for_by_its_name(project, capsys):
    project.run(COUNT)
    project.run(part("split", "failed"), app="other")
    assert main(["status"]) == 1
    capsys.readouterr()
    assert main(["status", "plant", "--json"]) == 0
    assert [run["app"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["plant"]
    assert main(["status", "no_such_module"]) == 1
    assert "no_such_module" in capsys.readouterr().err


def test_an_application_can_be_asked_for_by_where_it_is_declared(project, tmp_path, capsys):
    project.run(COUNT)
    (tmp_path / "one.py").write_text("from penstock import App\napp = App('plant')\n")
    (tmp_path / "two.py").write_text("from penstock import App\napp = App('idle')\n")
    assert main(["status", "one.py"]) == 0
    assert main(["status", "two.py"]) == 1
    assert "'two.py' is not running in .penstock" in capsys.readouterr().err


def test_a_page_that_is_gone_or_says_something_else_or_nothing_is_told(project, monkeypatch):
    monkeypatch.setattr("penstock.cli.status.overview._ASK_SECONDS", 0.2)
    project.run(COUNT)
    with socket.socket() as silent, socket.socket() as gone:
        for each in (silent, gone):
            each.bind(("127.0.0.1", 0))
        silent.listen()
        gone_port = gone.getsockname()[1]
        gone.close()
        project.enter(silent.getsockname()[1], app="silent")
        project.enter(gone_port, app="gone")
        odd = project.stack.enter_context(StatusPage(lambda: "odd", port=0))
        project.enter(odd.port, app="odd")
        found = look(project.registry)
    assert [run.app for run in found.runs] == ["plant"]
    assert not found.healthy
    why = {each.entry.app: each.why for each in found.unanswered}
    assert why["silent"] == "no answer within 0.2s"
    assert "refused" in why["gone"]
    assert why["odd"] == "its answer is not a status of this version of Penstock"
    assert [line for line in found.troubles() if "(dev, process 42) does not answer" in line]


def test_one_that_ends_while_it_is_asked_is_no_trouble(project):
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]

    class Once(Registry):
        asked = 0

        def entries(self):
            self.asked += 1
            entry = RunEntry(app="plant", command="run", pid=1, port=port, started_at=AT)
            return [entry] if self.asked == 1 else []

    assert look(Once(project.registry._directory)).empty


def test_tables_are_made_of_values():
    status = RunStatus(app="plant", command="run", pid=7, started_at=AT, parts=(COUNT,))
    overview = Overview((status,))
    assert run_line(status, AT.replace(hour=1)) == "plant: penstock run, process 7, up 1h00m"
    assert [row[1] for row in part_rows(overview)] == ["count"]
    assert [row[3] for row in fact_rows(overview)] == ["batch", "panes"]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_it_is_drawn_and_watching_ends_with_ctrl_c(project, monkeypatch):
    project.run(COUNT)
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    assert main(["status"]) == 0
    drawn = [line.split() for line in screen.getvalue().splitlines()]
    assert ["part", "state", "since", "in", "out", "lag", "dead"] in drawn
    assert ["count", "running", "1m05s", "12,345", "20/s", "7", "1.0/s", "3", "45"] in drawn
    assert ["count", "batch", "7", "in", "0.900s"] in drawn
    looks = []

    def sleep(_seconds):
        looks.append(1)
        if len(looks) >= 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.status.status.sleep", sleep)
    assert main(["status", "--watch"]) == 130
    assert main(["status", "--watch", "--json"]) == 130
