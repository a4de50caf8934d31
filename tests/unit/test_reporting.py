"""What a run of the tests has told by the time it is cut off."""

import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
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
