"""Applications made by chance, killed at any step: they tell what they tell unhurt."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.services.state.timing import shelved
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue

EQUIVALENCE = Path(__file__).parents[2] / "equivalence"
kit = SimpleNamespace(**runpy.run_path(str(EQUIVALENCE / "crashes.py")))
Plan = kit.kit.Plan

SEEDS = 40
"""``make chaos`` plays thousands."""
SEEDS_ON_DISK = (101, 102)
"""Each death opens every state anew, which takes a while."""


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_a_random_application_killed_at_any_step_tells_what_it_tells_unhurt(first):
    deaths = 0
    for seed in range(first, first + 10):
        plan = Plan.draw(seed)
        found, died = kit.differences(plan, number=20)
        assert found == [], plan
        deaths += died
    assert deaths >= 10


@pytest.mark.parametrize("seed", SEEDS_ON_DISK)
def test_it_tells_the_same_with_its_state_on_a_disk(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(shelved, "WINDOW", 2)
    monkeypatch.setattr(shelved, "CACHED_TIMERS", 3)
    plan = Plan.draw(seed)
    found, deaths = kit.differences(plan, number=20, disk=kit.Disk(tmp_path))
    assert found == [], plan
    assert deaths > 0


@pytest.mark.parametrize(
    ("owner", "name"), [(TimerQueue, "changes"), (TaskEventTime, "load"), (TimerQueue, "put_back")]
)
def test_what_is_not_durable_is_found_out(owner, name, monkeypatch):
    monkeypatch.setattr(owner, name, lambda *_: ())
    with_timers = (Plan.draw(seed, parts=frozenset({"fold"})) for seed in range(30))
    assert any(kit.differences(plan, number=30)[0] for plan in with_timers)
