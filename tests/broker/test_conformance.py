"""The pane cases as services on a real broker, as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"


@pytest.mark.timeout(500)
def test_all_pane_cases_pass_as_services():
    ran = subprocess.run(
        [sys.executable, CONFORMANCE / "panes.py", CONFORMANCE / "panes.json", "--engine=service"],
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    assert ran.stdout.splitlines()[-1] == "36 passed, 0 failed", ran.stdout + ran.stderr
