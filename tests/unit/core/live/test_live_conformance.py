"""The cases of filters, orders and live queries from outside, where they are beside the project."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "conformance" / "filters.py"
OUTSIDE = Path(__file__).parents[5] / "shared" / "conformance"


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("filters", "core"),
        ("sorts", "core"),
        ("live", "core"),
        ("sorts", "driver"),
        ("live", "driver"),
    ],
)
def test_all_cases_from_outside_pass(kind, engine):
    file = OUTSIDE / f"{kind}.json"
    if not file.exists():
        pytest.skip(f"{kind}.json is not beside the project")
    done = subprocess.run(
        [sys.executable, RUNNER, file, "--engine", engine],
        check=False,
        capture_output=True,
        text=True,
    )
    count = len(json.loads(file.read_text())["cases"])
    assert done.stdout.splitlines()[-1] == f"{count} passed, 0 failed", done.stdout[-2000:]


def test_a_case_that_does_not_hold_is_reported_and_fails(tmp_path):
    cases = [{"id": "wrong", "filter": {"a": 1}, "docs": [{"a": 1}], "match": []}]
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": cases}))
    done = subprocess.run(
        [sys.executable, RUNNER, file], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "wrong: expected [[]], found [['doc0']]",
        "0 passed, 1 failed",
    ]
