"""The quick set: the scenarios of ``make chaos``, as long as a test may take."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("scenarios.py"))))
pytestmark = pytest.mark.broker


def test_three_workers_killed_at_random_count_every_record_once():
    findings, facts = kit.run("random_death", 1, scale=0.2)
    assert findings == []
    assert facts["kills"] >= 2


def test_a_worker_that_dies_at_any_step_leaves_the_next_one_an_exact_state():
    findings, _ = kit.run("every_step", 2, scale=0.3)
    assert findings == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be mounted by root only")
def test_a_service_whose_disk_is_full_says_so_and_goes_on_when_there_is_room():
    findings, _ = kit.run("full_disk", 1, scale=0.3)
    assert findings == []
