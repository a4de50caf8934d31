"""Some join cases as services: workers, two topics between parts, restarts, on a real broker."""

import subprocess
import sys
from pathlib import Path

CONFORMANCE = Path(__file__).parents[1] / "conformance"


def test_join_cases_pass_on_services():
    runner, file = CONFORMANCE / "joins.py", CONFORMANCE / "more_joins.json"
    ran = subprocess.run(
        [sys.executable, runner, file, "--engine", "service", "--case=-left"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "3 passed, 0 failed"
