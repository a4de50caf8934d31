"""The pane cases as services on a real broker, as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"


@pytest.mark.timeout(500)
def test_all_pane_cases_pass_as_services_with_state_in_memory_and_on_disk():
    # Side by side: both mostly wait for their brokers.
    running = [
        subprocess.Popen(
            [
                sys.executable,
                CONFORMANCE / "panes.py",
                CONFORMANCE / "panes.json",
                "--engine",
                each,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for each in ("service", "service-on-disk")
    ]
    said = [each.communicate(timeout=450)[0] for each in running]
    assert [text.splitlines()[-1] for text in said] == ["36 passed, 0 failed"] * 2, said
