import sys
import time
from datetime import timedelta

import pytest

from penstock.core.settings.settings import LogSettings
from penstock.machine.process.child import Child
from penstock.machine.process.logfile import LogWatch, bound_log

LINE = b"x" * 99 + b"\n"


def test_a_log_past_its_bound_is_put_aside_and_its_writer_goes_on(tmp_path):
    log = tmp_path / "a.log"
    with log.open("ab", buffering=0) as writer:
        for number in range(5):
            writer.write(b"%d\n" % number + LINE * 10)
            assert bound_log(log, max_bytes=500, kept=2)
            assert log.stat().st_size == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1", "a.log.2"]
    assert all(path.stat().st_size <= 500 for path in tmp_path.iterdir())
    assert (tmp_path / "a.log.1").read_bytes() == LINE * 4
    assert (tmp_path / "a.log.1").stat().st_mode & 0o077 == 0


def test_a_log_within_its_bound_or_not_there_is_left_alone(tmp_path):
    log = tmp_path / "a.log"
    assert not bound_log(log, max_bytes=500, kept=2)
    log.write_bytes(LINE)
    assert not bound_log(log, max_bytes=500, kept=2)
    assert log.read_bytes() == LINE


def test_a_log_that_cannot_be_put_aside_is_left_as_it_is(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(LINE * 10)
    (tmp_path / "a.log.1").mkdir()
    assert not bound_log(log, max_bytes=500, kept=1)
    assert log.read_bytes() == LINE * 10


def test_without_older_files_it_is_only_emptied(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(LINE * 10)
    assert bound_log(log, max_bytes=500, kept=0)
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


def test_a_child_that_talks_while_it_runs_fills_no_disk(tmp_path):
    talk = "import sys, time; sys.stderr.write(('x' * 999 + chr(10)) * 100); time.sleep(600)"
    log, aside = tmp_path / "talker.log", tmp_path / "talker.log.1"
    bounds = LogSettings(max_bytes=20_000, kept=1)
    deadline = time.monotonic() + 60
    with Child([sys.executable, "-c", talk], log=log, bounds=bounds) as child:
        while not aside.exists() and time.monotonic() < deadline:
            assert child.wait(timeout=timedelta(seconds=0.1)) is None
        assert aside.stat().st_size <= 20_000
        child.kill()


@pytest.mark.parametrize("there", [True, False])
def test_a_watch_looks_after_logs_until_it_is_stopped(tmp_path, monkeypatch, there):
    monkeypatch.setattr("penstock.machine.process.logfile._LOOK_SECONDS", 0.001)
    log = tmp_path / "a.log"
    if there:
        log.write_bytes(LINE * 10)
    with LogWatch([log], max_bytes=500, kept=1) as watch:
        while there and log.stat().st_size:
            watch._stop.wait(0.001)
    assert not there or (tmp_path / "a.log.1").exists()
