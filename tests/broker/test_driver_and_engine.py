"""Applications made by chance: on a real broker they tell what they tell in the driver."""

import random
import runpy
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

EQUIVALENCE = Path(__file__).parents[1] / "equivalence"
kit = SimpleNamespace(**runpy.run_path(str(EQUIVALENCE / "onbroker.py")))


def test_random_applications_tell_the_same_on_a_broker_as_in_the_driver(kafka, topic):
    several = [kit.OnBroker(kafka, topic.name(f"s{seed}"), seed) for seed in (1, 2, 3)]
    with ExitStack() as stack:
        for each in several:
            each.feed()
            stack.enter_context(each.running())
        for each in several:
            assert each.wait(each.expected()) == [], each.plan


@pytest.mark.parametrize("seed", [4, 5])
def test_a_random_application_killed_on_a_broker_tells_what_it_tells_in_the_driver(
    kafka, topic, seed
):
    made = kit.OnBroker(kafka, topic.name("app"), seed)
    made.feed()
    chance = random.Random(seed)
    assert made.killed(made.expected(), chance=chance, rounds=2) == [], made.plan
