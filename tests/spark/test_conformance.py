"""The pane cases through Structured Streaming and its state store, as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"
pytestmark = pytest.mark.spark


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "file", sorted(CONFORMANCE.glob("*panes.json")), ids=lambda file: file.stem
)
def test_all_pane_cases_pass_on_spark(file):
    ran = subprocess.run(
        [sys.executable, CONFORMANCE / "panes.py", file, "--engine", "spark"],
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    assert ran.stdout.splitlines()[-1].endswith(" passed, 0 failed"), ran.stdout + ran.stderr
