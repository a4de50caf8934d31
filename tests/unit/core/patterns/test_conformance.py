"""The pattern cases on the machine: our own, and those from outside where they are present."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
CASES = ROOT / "tests" / "conformance"
OUTSIDE = ROOT.parent / "shared" / "conformance" / "patterns.json"


def run(file, engine="machine"):
    command = [sys.executable, CASES / "patterns.py", file, "--engine", engine]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def all_pass(file, engine):
    count = len(json.loads(file.read_text(encoding="utf-8"))["cases"])
    ran = run(file, engine)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == f"{count} passed, 0 failed"


def test_every_case_of_our_own_passes():
    all_pass(CASES / "more_patterns.json", "machine")


def test_every_case_from_outside_passes():
    if not OUTSIDE.exists():
        pytest.skip(f"{OUTSIDE} is not here")
    all_pass(OUTSIDE, "machine")


def test_a_wrong_expectation_is_a_failure_with_both_sides(tmp_path):
    cases = json.loads((CASES / "more_patterns.json").read_text(encoding="utf-8"))["cases"]
    (wrong,) = (case for case in cases if case["id"] == "order-without-payment")
    wrong["matches"] = [[0]]
    (tmp_path / "wrong.json").write_text(json.dumps({"cases": [wrong]}), encoding="utf-8")
    ran = run(tmp_path / "wrong.json")
    assert ran.returncode == 1
    assert "FAILED order-without-payment" in ran.stdout
    assert "expected [(0,)]" in ran.stdout
    assert "got      [(1,)]" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_every_case_of_our_own_passes_in_the_driver():
    all_pass(CASES / "more_patterns.json", "driver")


def test_every_case_from_outside_passes_in_the_driver():
    if not OUTSIDE.exists():
        pytest.skip(f"{OUTSIDE} is not here")
    all_pass(OUTSIDE, "driver")
