import os
import stat

import pytest

from penstock.machine.files import write_atomically
from penstock.machine.locks import FileLock
from penstock.machine.private import make_private


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_directory_is_made_for_its_owner_alone(tmp_path):
    assert make_private(tmp_path / "a" / ".penstock") == ""
    assert mode(tmp_path / "a" / ".penstock") == 0o700


def test_one_that_others_could_enter_is_closed_and_told_once(tmp_path):
    home = tmp_path / ".penstock"
    (home / "broker").mkdir(parents=True)
    (home / "rebuild-app.lock").touch()
    assert "is now closed to them" in make_private(home)
    assert mode(home) == 0o700
    assert make_private(home) == ""


def test_a_directory_with_other_things_stays_open_and_ours_in_it_are_closed(tmp_path):
    for name in ("logs", "broker", "src"):
        (tmp_path / name).mkdir()
    tmp_path.chmod(0o755)
    assert make_private(tmp_path) == ""
    assert mode(tmp_path) == 0o755
    assert mode(tmp_path / "src") == 0o755
    assert {mode(tmp_path / name) for name in ("logs", "broker")} == {0o700}


def test_locks_and_files_are_for_their_owner_alone(tmp_path):
    lock = FileLock(tmp_path / "a.lock")
    assert lock.acquire()
    lock.release()
    write_atomically(tmp_path / "b.json", "{}")
    assert mode(tmp_path / "a.lock") == mode(tmp_path / "b.json") == 0o600
