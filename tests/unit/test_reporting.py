"""What a run of the tests tells: of all its lanes, and by the time it is cut off."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
RUN_TESTS = Path(__file__).parents[2] / "scripts" / "run_tests.py"
PLAINLY = ("-p", "no:hypothesispytest", "-p", "no:timeout", "-p", "no:penstock")
"""Without plugins, whose loading takes most of the time of such a run."""
PLAIN = """
from pathlib import Path

def test_that_passes():
    with Path("ran").open("a") as file:
        file.write(Path(__file__).stem + chr(10))
"""
WITH_SPARK = """
import time
from pathlib import Path
import pytest

@pytest.mark.spark
def test_that_fails_with_spark():
    with Path("ran").open("a") as file:
        file.write(Path(__file__).stem + chr(10))
    time.sleep(0.3)
    assert 6 * 7 == 41
"""
UNSTABLE = """
def test_that_passes_the_second_time():
    there = Path("second").exists()
    Path("second").touch()
    assert there
"""
CUT_OFF = """
import os

def test_that_fails():
    print("bytecode is kept:", "PYTHONDONTWRITEBYTECODE" not in os.environ)
    assert 6 * 7 == 41

def test_that_never_ends():
    os._exit(3)
"""


def test_a_failure_can_be_read_though_the_run_was_cut_off_afterwards(tmp_path):
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_cut_off.py").write_text(CUT_OFF)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert run.returncode == 3
    assert "test_cut_off.py::test_that_fails" in run.stdout
    assert "assert (6 * 7) == 41" in run.stdout
    assert "bytecode is kept: True" in run.stdout, "so that programs of tests start quickly"


def run_lanes(directory):
    """Run the lanes on the tests of a directory; return the exit code and the lines."""
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = spark\n")
    run = subprocess.run(
        [sys.executable, RUN_TESTS, *PLAINLY],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return run.returncode, run.stdout.splitlines()


def test_lanes_run_every_module_once_and_tell_at_the_end_what_failed_and_what_was_slow(tmp_path):
    for number in range(3):
        (tmp_path / f"test_plain_{number}.py").write_text(PLAIN)
    (tmp_path / "test_spark.py").write_text(WITH_SPARK)
    code, lines = run_lanes(tmp_path)
    ran = [line.split()[0] for line in (tmp_path / "ran").read_text().splitlines()]
    modules = ["test_plain_0", "test_plain_1", "test_plain_2", "test_spark"]
    assert sorted(ran) == [*modules, "test_spark"], "what failed had another try"
    end = lines[lines.index("the slowest 10:") :]
    assert code == 1
    assert "test_spark.py::test_that_fails_with_spark" in end[1]
    busy = end[end.index("most processor time, without that of brokers:") + 1 :]
    assert sorted(each.split()[-1] for each in busy[:4]) == [f"{name}.py" for name in modules]
    assert "FAILED test_spark.py::test_that_fails_with_spark - assert (6 * 7) == 41" in end
    assert end[-1].startswith("4 tests in 0 min ")


def test_a_test_that_passes_alone_is_named_as_unstable(tmp_path):
    (tmp_path / "test_unstable.py").write_text(PLAIN + UNSTABLE)
    code, lines = run_lanes(tmp_path)
    assert code == 0
    assert lines[-2].endswith("find out why: test_unstable.py::test_that_passes_the_second_time")


@pytest.mark.parametrize(
    ("codes", "failed", "again"),
    [([0, 1, 5], 4, True), ([0, 1, 5], 5, False), ([0, 0, 0], 0, False), ([1, 3, 0], 1, False)],
)
def test_a_few_tests_that_failed_have_another_try_where_nothing_else_went_wrong(
    monkeypatch, codes, failed, again
):
    monkeypatch.syspath_prepend(RUN_TESTS.parent)
    run_tests = runpy.run_path(str(RUN_TESTS))
    assert run_tests["worth_another_try"](codes, failed) is again


def test_a_test_that_a_lane_did_not_end_is_named(tmp_path):
    (tmp_path / "test_cut_off.py").write_text(CUT_OFF)
    code, lines = run_lanes(tmp_path)
    missing = lines.index("1 tests did not run to their end:")
    assert (code, lines[missing + 1]) == (3, "  test_cut_off.py::test_that_never_ends")


@pytest.mark.parametrize(
    ("codes", "missing", "verdict"),
    [([0, 5, 0], 0, 0), ([0, 1, 5], 0, 1), ([5, 5, 5], 0, 5), ([0, 0, 0], 1, 6), ([3, 0, 0], 1, 3)],
)
def test_a_run_is_good_where_some_test_ran_and_none_failed_or_is_missing(
    monkeypatch, codes, missing, verdict
):
    monkeypatch.syspath_prepend(RUN_TESTS.parent)
    run_tests = runpy.run_path(str(RUN_TESTS))
    assert run_tests["verdict"](codes, missing) == verdict
