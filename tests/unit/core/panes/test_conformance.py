import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parents[3] / "conformance"


def test_every_case_passes_on_the_machine():
    run = subprocess.run(
        [sys.executable, CASES / "panes.py", CASES / "panes.json", "--engine", "driver"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "36 passed, 0 failed"


def test_a_wrong_expectation_is_a_failure_with_both_sides(tmp_path):
    text = (CASES / "panes.json").read_text(encoding="utf-8")
    wrong = text.replace('"values": [1, 2, 3], "index": 0', '"values": [1, 2, 4], "index": 0', 1)
    assert wrong != text
    (tmp_path / "wrong.json").write_text(wrong, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, CASES / "panes.py", tmp_path / "wrong.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "FAILED default_two_windows" in run.stdout
    assert "expected" in run.stdout
    assert run.stdout.splitlines()[-1] == "35 passed, 1 failed"
