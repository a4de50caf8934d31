"""The join cases: those of the project, and those from outside where they are there."""

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "conformance" / "joins.py"
OWN = RUNNER.with_name("more_joins.json")
OUTSIDE = Path(__file__).parents[5] / "shared" / "conformance" / "joins.json"


def run(file, engine):
    return subprocess.run(
        [sys.executable, RUNNER, file, "--engine", engine],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("engine", ["machine", "driver"])
@pytest.mark.parametrize("file", [OWN, OUTSIDE], ids=["own", "outside"])
def test_the_cases_pass_on_the_machine_and_in_the_driver(file, engine):
    if not file.exists():
        pytest.skip(f"{file} is not here")
    ran = run(file, engine)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed, failed = ran.stdout.splitlines()[-1].split(", ")
    assert (int(passed.split()[0]) > 10, failed) == (True, "0 failed")


def test_a_wrong_expectation_is_a_failure_with_both_sides(tmp_path):
    text = OWN.read_text(encoding="utf-8")
    wrong = text.replace('["k", ["o1", "p1"], 3]', '["k", ["o1", "p2"], 3]', 1)
    assert wrong != text
    (tmp_path / "wrong.json").write_text(wrong, encoding="utf-8")
    ran = run(tmp_path / "wrong.json", "driver")
    assert ran.returncode == 1
    assert "FAILED stream-stream-within" in ran.stdout
    assert ran.stdout.splitlines()[-1].endswith(" 1 failed")
