"""Every Nexmark query as a stream, by the command that people run, compared with a database."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "nexmark"))

import run as nexmark_run
from generator import Disorder
from nexmark import QUERIES
from verify import Case

LIMIT_SECONDS = 1200
pytestmark = [pytest.mark.spark, pytest.mark.timeout(LIMIT_SECONDS + 60)]


def test_every_query_gives_the_databases_answer_from_late_mixed_and_doubled_events(tmp_path):
    disorder = Disorder(group=100, late=0.05, late_ms=3000, dup=0.02)
    events = tmp_path / "events.jsonl"
    Case(6000, seed=7, tps=200, disorder=disorder, bound="4s").write(events)

    # In a process of its own: two dozen queries want more memory than other tests.
    run = [sys.executable, nexmark_run.__file__, events, "--all", "--check", "--together", "12"]
    told = subprocess.run(
        [*run, "--disorder", "4s", "--parts", "2"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )

    found = re.findall(r"^(q\d+): (\d+) rows right, (.*)$", told.stdout, re.MULTILINE)
    assert [query for query, *_ in found] == list(QUERIES), told.stderr[-3000:]
    wrong = [rest for *_, rest in found if rest != "0 missing, 0 not asked for"]
    assert (told.returncode, wrong) == (0, []), told.stdout
    assert all(int(right) for _, right, _ in found), told.stdout
