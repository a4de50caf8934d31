import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from penstock.machine.process.registry import Registry, RunEntry

AT = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number=1, **given):
    told = {"app": "plant", "command": "run", "pid": number, "port": 9000 + number}
    return RunEntry(**(told | {"started_at": AT.replace(minute=number)} | given))


def test_who_runs_is_found_until_it_ends_and_leaves_nothing_behind(tmp_path):
    registry = Registry(tmp_path / "runs")
    assert registry.entries() == []
    with registry.entered(entry(2)), registry.entered(entry(1, app="other")):
        assert registry.entries() == [entry(1, app="other"), entry(2)]
    assert registry.entries() == []
    assert list((tmp_path / "runs").iterdir()) == []


CHILD = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from penstock.machine.process.registry import RunEntry, Registry

at = datetime(2026, 1, 1, tzinfo=UTC)
entry = RunEntry(app="child", command="run", pid=1, port=1, started_at=at)
with Registry(Path(sys.argv[1])).entered(entry):
    print("here", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_known_as_such_and_taken_away(tmp_path):
    registry = Registry(tmp_path)
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"here\n"
            assert [each.app for each in registry.entries()] == ["child"]
        finally:
            child.kill()
        assert child.wait() == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert registry.entries() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("garbage", [b"", b"{", b'{"app": 1}', b"\xff\x00" * 1000, b"[]"])
def test_a_file_that_says_nothing_is_passed_over_and_removed_when_nobody_can_own_it(
    tmp_path, garbage
):
    registry = Registry(tmp_path)
    path = tmp_path / "1-x.json"
    path.write_bytes(garbage)
    with registry.entered(entry()):
        # Its process may be about to write it.
        assert registry.entries() == [entry()]
        assert path.exists()
        long_ago = time.time() - 3600
        os.utime(path, (long_ago, long_ago))
        assert registry.entries() == [entry()]
        assert not path.exists()


def test_an_entry_that_was_spoilt_under_its_owner_is_left_alone(tmp_path):
    registry = Registry(tmp_path)
    with registry.entered(entry()):
        (path,) = tmp_path.iterdir()
        path.write_bytes(b"spoilt")
        assert registry.entries() == []
        assert path.exists()


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OSError, match="file"),
        Registry(tmp_path / "file" / "runs").entered(entry()),
    ):
        pass
