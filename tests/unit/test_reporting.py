"""What a run of the tests tells: of two halves, and by the time it is cut off."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
RUN_TESTS = Path(__file__).parents[2] / "scripts" / "run_tests.py"
HALVES = """
import pytest

def test_that_passes():
    pass

@pytest.mark.spark
def test_that_fails_with_spark():
    assert 6 * 7 == 41
"""
CUT_OFF = """
import os

def test_that_fails():
    print("what it printed")
    assert 6 * 7 == 41

def test_that_never_ends():
    os._exit(3)
"""


def test_a_failure_can_be_read_though_the_run_was_cut_off_afterwards(tmp_path):
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_cut_off.py").write_text(CUT_OFF)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 3
    assert "test_cut_off.py::test_that_fails" in run.stdout
    assert "assert (6 * 7) == 41" in run.stdout
    assert "what it printed" in run.stdout


@pytest.mark.parametrize(
    ("chosen", "code", "end"),
    [
        (
            [],
            1,
            [
                "FAILED test_halves.py::test_that_fails_with_spark - assert (6 * 7) == 41",
                "with Spark: 1 failed, 1 deselected (exit code 1)",
                "without Spark: 1 passed, 1 deselected (exit code 0)",
            ],
        ),
        (
            ["-k", "passes"],
            0,
            [
                "with Spark: 2 deselected (exit code 5)",
                "without Spark: 1 passed, 1 deselected (exit code 0)",
            ],
        ),
        (
            ["-k", "nothing"],
            5,
            [
                "with Spark: 2 deselected (exit code 5)",
                "without Spark: 2 deselected (exit code 5)",
            ],
        ),
    ],
)
def test_both_halves_tell_at_the_end_what_failed(tmp_path, chosen, code, end):
    (tmp_path / "test_halves.py").write_text(HALVES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spark\n")
    run = subprocess.run(
        [sys.executable, RUN_TESTS, *chosen],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = re.sub(r" in [0-9.]+s", "", run.stdout).splitlines()
    assert (run.returncode, lines[-len(end) :]) == (code, end)
