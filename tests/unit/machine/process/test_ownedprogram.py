"""The keeper with small Python programs in place of a JVM."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.machine.process.ownedprogram import KeptProgram
from penstock.machine.process.processes import is_alive, wait_until_dead

LIMIT = timedelta(seconds=10)
GRACE = timedelta(seconds=5)
ENVIRONMENT = {"PATH": os.environ["PATH"]}

OWNER = """
import sys
from datetime import timedelta
from pathlib import Path
from penstock.machine.process.ownedprogram import KeptProgram
kept = KeptProgram(Path(sys.argv[1]), grace=timedelta(seconds=5))
assert kept.own(timeout=timedelta(seconds=5))
if not kept.running():
    assert kept.start(sys.argv[2:], environment={})
print(kept.pid(), flush=True)
sys.stdin.read()
"""


def program(directory: Path, code: str = "signal.pause()") -> list[str]:
    """Return a command that waits, and has the directory in its command line as a broker has."""
    return [sys.executable, "-I", "-c", f"import signal, sys, time\n{code}", str(directory)]


def kept_in(directory: Path, *, grace: timedelta = GRACE) -> KeptProgram:
    return KeptProgram(directory, grace=grace)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptProgram]:
    one = kept_in(tmp_path)
    assert one.own(timeout=LIMIT)
    assert one.start(program(tmp_path), environment=ENVIRONMENT)
    yield one
    one.disown()
    assert one.wait_until_stopped(timeout=LIMIT)


def started_pid(kept: KeptProgram) -> int:
    pid = kept.pid()
    assert pid is not None
    return pid


def start_owner(directory: Path) -> tuple["subprocess.Popen[str]", int]:
    command = [sys.executable, "-c", OWNER, str(directory), *program(directory)]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    return owner, int(owner.stdout.readline())


def end_owner(owner: "subprocess.Popen[str]") -> None:
    owner.kill()
    owner.communicate()


def test_a_program_ends_when_its_only_owner_gives_it_up(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    assert kept.own(timeout=LIMIT)
    assert kept.start(program(tmp_path), environment=ENVIRONMENT)
    pid = started_pid(kept)
    assert is_alive(pid)
    assert kept.disown()
    assert kept.wait_until_stopped(timeout=LIMIT)
    assert not is_alive(pid)
    assert kept.pid() is None


def test_a_program_lives_until_its_last_owner_gives_it_up(kept: KeptProgram) -> None:
    second = kept_in(kept.directory)
    assert second.own(timeout=LIMIT)
    pid = started_pid(kept)
    assert not kept.disown()
    assert is_alive(pid)
    assert second.pid() == pid
    assert second.disown()
    assert second.wait_until_stopped(timeout=LIMIT)


def test_a_killed_owner_leaves_no_program_behind(tmp_path: Path) -> None:
    owner, pid = start_owner(tmp_path)
    assert is_alive(pid)
    end_owner(owner)
    assert wait_until_dead(pid, timeout=LIMIT)
    assert kept_in(tmp_path).wait_until_stopped(timeout=LIMIT)


def test_the_program_of_a_killed_owner_is_adopted_while_it_runs(tmp_path: Path) -> None:
    owner, pid = start_owner(tmp_path)
    heir = kept_in(tmp_path)
    assert heir.own(timeout=LIMIT)
    end_owner(owner)
    assert not heir.wait_until_stopped(timeout=timedelta(milliseconds=500))
    assert heir.pid() == pid
    assert heir.disown()
    assert heir.wait_until_stopped(timeout=LIMIT)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_killed_keeper_takes_its_program_along(kept: KeptProgram) -> None:
    pid = started_pid(kept)
    os.kill(kept._state()["keeper"], signal.SIGKILL)
    assert wait_until_dead(pid, timeout=LIMIT)
    assert not kept.running()


def test_an_orphan_of_a_killed_keeper_is_ended_before_a_new_start(
    tmp_path: Path, kept: KeptProgram
) -> None:
    directory = tmp_path / "other"
    directory.mkdir()
    command = program(directory, "print('ready', flush=True); signal.pause()")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as orphan:
        assert orphan.stdout
        assert orphan.stdout.readline() == b"ready\n"
        (directory / "keeper.json").write_text(f'{{"keeper": 1, "program": {orphan.pid}}}')
        kept_in(directory).end_orphan()
        assert orphan.wait(LIMIT.total_seconds()) == -signal.SIGKILL


def test_a_stale_number_of_another_program_is_left_alone(tmp_path: Path, kept: KeptProgram) -> None:
    directory = tmp_path / "other"
    directory.mkdir()
    (directory / "keeper.json").write_text(f'{{"keeper": 1, "program": {started_pid(kept)}}}')
    kept_in(directory).end_orphan()
    assert kept.running()


def test_when_the_program_ends_its_keeper_ends_and_it_can_be_started_again(
    kept: KeptProgram,
) -> None:
    first = started_pid(kept)
    os.kill(first, signal.SIGKILL)
    assert kept.wait_until_stopped(timeout=LIMIT)
    assert kept.start(program(kept.directory), environment=ENVIRONMENT)
    assert started_pid(kept) != first


def test_a_program_that_ignores_the_stop_is_killed_after_its_grace(tmp_path: Path) -> None:
    kept = kept_in(tmp_path, grace=timedelta(milliseconds=100))
    assert kept.own(timeout=LIMIT)
    stubborn = (
        "signal.signal(15, signal.SIG_IGN); print('ready', flush=True)\nwhile 1: time.sleep(9)"
    )
    assert kept.start(program(tmp_path, stubborn), environment=ENVIRONMENT)
    pid = started_pid(kept)
    assert kept.disown()
    assert kept.wait_until_stopped(timeout=LIMIT)
    assert not is_alive(pid)


def test_a_program_whose_directory_is_deleted_ends(tmp_path: Path) -> None:
    kept = kept_in(tmp_path / "directory")
    assert kept.own(timeout=LIMIT)
    assert kept.start(program(tmp_path), environment=ENVIRONMENT)
    pid = started_pid(kept)
    shutil.rmtree(kept.directory)
    assert wait_until_dead(pid, timeout=LIMIT)
    assert not kept.running()
    kept.disown()


def test_the_keeper_is_not_of_its_owners_session(kept: KeptProgram) -> None:
    assert os.getsid(started_pid(kept)) not in (os.getsid(0), os.getpid())


def test_a_command_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    assert kept.own(timeout=LIMIT)
    assert not kept.start([str(tmp_path / "nothing")], environment=ENVIRONMENT)
    assert "No such file" in kept.output.read_text()
    assert kept.disown()


def test_state_that_cannot_be_read_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "keeper.json").write_text("\x00\x00")
    kept = kept_in(tmp_path)
    kept.end_orphan()
    assert kept.pid() is None


def test_others_are_told_from_oneself(tmp_path: Path) -> None:
    kept, other = kept_in(tmp_path), kept_in(tmp_path)
    assert kept.own(timeout=LIMIT)
    assert not kept.owned_by_others()
    assert other.own(timeout=LIMIT)
    assert kept.owned_by_others()
    assert kept.owned
    other.disown()
    kept.disown()
