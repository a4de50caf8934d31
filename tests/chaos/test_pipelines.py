"""The quick set of what can happen to pipelines; ``make chaos`` plays all of it, with seeds."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("pipelinescenarios.py"))))
pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_pipelines_wait_for_a_broker_that_is_away_and_lose_and_double_nothing():
    findings, facts = kit.run("pipelines_broker_away", 1, scale=0.3)
    assert findings == []
    assert facts["degraded"]


def test_poisoned_records_of_every_kind_are_dead_letters_and_the_counts_add_up():
    findings, facts = kit.run("pipelines_poison", 1, scale=0.3)
    assert findings == []
    assert facts["50 MB"] == "data.too-large"


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be mounted by root only")
def test_pipelines_whose_checkpoint_disk_is_full_stop_with_the_reason_and_go_on_exactly():
    findings, facts = kit.run("pipelines_full_checkpoint", 1, scale=0.3)
    assert findings == []
    assert "the disk is full" in facts["reason"]
