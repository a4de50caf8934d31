from datetime import timedelta

import pytest

from penstock.cli.supervision.board import Board
from penstock.cli.supervision.plan import Unit
from penstock.cli.supervision.supervisor import Supervisor
from penstock.core.backoff import Backoff

UNITS = (Unit("file", "source", ("file",)), Unit("count", "service", ("count",)))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Program:
    """A process as the supervisor sees it; the test decides when it ends."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.code: int | None = None
        self.stubborn = stubborn
        self.asked: list[str] = []

    def exit_code(self) -> int | None:
        return self.code

    def reason(self) -> str:
        return f"exit {self.code}"

    def terminate(self) -> None:
        self.asked.append("terminate")
        if not self.stubborn:
            self.code = 0

    def kill(self) -> None:
        self.asked.append("kill")
        self.code = -9 if self.code is None else self.code


class Stage:
    """A supervisor with everything around it in the test's hands."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.clock = Clock()
        self.notes: list[str] = []
        self.programs: dict[str, list[Program]] = {unit.name: [] for unit in UNITS}
        self.board = Board(UNITS, clock=self.clock)

        def start(unit: Unit) -> Program:
            program = Program(stubborn=stubborn)
            self.programs[unit.name].append(program)
            return program

        self.supervisor = Supervisor(
            UNITS,
            start=start,
            board=self.board,
            note=self.notes.append,
            backoff=Backoff(timedelta(seconds=1), timedelta(seconds=4)),
            clock=self.clock,
        )

    def states(self) -> dict[str, str]:
        return {row.part: row.state for row in self.board.rows()}


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.supervisor.look()
    return stage


def test_every_unit_is_started_once(stage):
    stage.supervisor.look()
    assert [len(started) for started in stage.programs.values()] == [1, 1]
    assert stage.states() == {"file": "starting", "count": "starting"}


def test_a_process_that_dies_is_started_again_after_a_growing_wait(stage):
    for wait in (1, 2, 4, 4):
        stage.programs["count"][-1].code = 1
        stage.supervisor.look()
        assert stage.notes[-1] == f"count died (exit 1); starting it again in {wait}s"
        assert stage.states()["count"] == "restarting"
        before = len(stage.programs["count"])
        stage.clock.now += wait - 0.1
        stage.supervisor.look()
        assert len(stage.programs["count"]) == before
        stage.clock.now += 0.1
        stage.supervisor.look()
        assert len(stage.programs["count"]) == before + 1
    assert len(stage.programs["file"]) == 1
    assert [row.restarts for row in stage.board.rows()] == [0, 4]


def test_what_a_dead_process_left_behind_is_killed(stage):
    stage.programs["count"][0].code = 1
    stage.supervisor.look()
    assert stage.programs["count"][0].asked == ["kill"]


def test_a_process_that_ran_well_for_long_starts_with_the_first_wait_again(stage):
    for _ in range(3):
        stage.programs["count"][-1].code = 1
        stage.supervisor.look()
        stage.clock.now += 4
        stage.supervisor.look()
    stage.clock.now += 100
    stage.programs["count"][-1].code = 1
    stage.supervisor.look()
    assert stage.notes[-1].endswith("in 1s")


def test_a_process_that_ends_well_is_not_started_again(stage):
    stage.programs["file"][0].code = 0
    stage.supervisor.look()
    stage.clock.now += 100
    stage.supervisor.look()
    assert len(stage.programs["file"]) == 1
    assert stage.states()["file"] == "ended"
    assert not stage.supervisor.all_ended
    stage.programs["count"][0].code = 0
    stage.supervisor.look()
    assert stage.supervisor.all_ended


def test_stopping_asks_first_and_only_the_kinds_that_are_meant(stage):
    stage.supervisor.stop(["source"], grace=timedelta(seconds=5))
    assert stage.programs["file"][0].asked[0] == "terminate"
    assert stage.programs["count"][0].asked == []
    stage.supervisor.stop(["service", "pipeline"], grace=timedelta(seconds=5))
    assert stage.programs["count"][0].asked[0] == "terminate"
    assert stage.notes == []


def test_what_does_not_end_in_time_is_killed_and_named():
    stage = Stage(stubborn=True)
    stage.supervisor.look()

    def tick() -> None:
        stage.clock.now += 1

    stage.supervisor.stop(["source", "service"], grace=timedelta(seconds=3), tick=tick)
    assert stage.notes == [
        "file did not end within 3s: killed",
        "count did not end within 3s: killed",
    ]
    assert stage.programs["count"][0].asked == ["terminate", "kill"]


def test_a_process_that_fails_while_it_stops_is_named_with_its_reason():
    stage = Stage(stubborn=True)
    stage.supervisor.look()
    stage.programs["count"][0].code = 1
    stage.supervisor.stop(["service"], grace=timedelta(seconds=3))
    assert stage.notes == ["count ended with a failure (exit 1)"]


def test_a_stopped_unit_that_was_due_is_not_started_any_more(stage):
    stage.programs["count"][0].code = 1
    stage.supervisor.look()
    stage.supervisor.stop(["service"], grace=timedelta(seconds=1))
    stage.clock.now += 100
    stage.supervisor.look()
    assert len(stage.programs["count"]) == 1


def test_a_machine_that_has_no_files_left_is_waited_for_and_told():
    stage = Stage()
    stage.supervisor.look()
    full = OSError(24, "Too many open files")
    count = stage.programs["count"][0]
    count.exit_code = lambda: (_ for _ in ()).throw(full)
    stage.supervisor.look()
    stage.supervisor.look()
    assert [note for note in stage.notes if "Too many open files" in note] == [
        "count cannot be supervised at the moment: [Errno 24] Too many open files"
    ]
    del count.exit_code
    count.code = 1
    stage.supervisor.look()
    assert stage.states()["count"] == "restarting"


def test_a_process_that_cannot_be_started_is_tried_again():
    stage = Stage()
    made = stage.supervisor._start
    stage.supervisor._start = lambda _: (_ for _ in ()).throw(OSError(24, "Too many open files"))
    stage.supervisor.look()
    assert set(stage.states().values()) == {"restarting"}
    assert "count died (it could not be started: [Errno 24] Too many open files)" in stage.notes[-1]
    stage.supervisor._start = made
    stage.clock.now += 1
    stage.supervisor.look()
    assert set(stage.states().values()) == {"starting"}
    assert not stage.supervisor.all_ended


def test_stopping_goes_on_where_a_process_cannot_be_looked_at_or_killed():
    stage = Stage(stubborn=True)
    stage.supervisor.look()
    full = OSError(24, "Too many open files")
    count = stage.programs["count"][0]
    count.exit_code = count.kill = lambda: (_ for _ in ()).throw(full)
    stage.clock.now = 100.0
    stage.supervisor.stop(["source", "service"], grace=timedelta(0))
    assert stage.programs["file"][0].asked == ["terminate", "kill"]
    assert "count ends with this process: [Errno 24] Too many open files" in stage.notes
