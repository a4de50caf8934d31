"""Applications made by chance: killed at any step, and on the broker against the driver."""

import random
import runpy
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.testing.broker import temporary_broker

kit = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[1] / "equivalence" / "onbroker.py"))
)
Scale = float
Outcome = tuple[list[str], dict[str, object]]
_TOGETHER = 4
"""So many applications run at a time."""


class Unavailable(Exception):  # noqa: N818 - as the other scenarios call it
    """Never raised: there is nothing that these need and a machine may lack."""


def random_applications(seed: int, scale: Scale) -> Outcome:
    """Applications in the driver, a thousand, killed at any step."""
    found, deaths, number = list[str](), 0, max(1, round(1000 * scale))
    for each in range(seed * 10_000, seed * 10_000 + number):
        wrong, died = kit.crashes.differences(kit.kit.Plan.draw(each))
        found += [f"seed {each}: {one}" for one in wrong]
        deaths += died
    return found, {"applications": number, "deaths": deaths}


def random_applications_killed(seed: int, scale: Scale) -> Outcome:
    """Applications on a broker, ten, each killed five times."""
    found, number = list[str](), max(1, round(10 * scale))
    with temporary_broker() as broker:
        for each in range(seed * 100, seed * 100 + number):
            made = kit.OnBroker(broker.connection, f"killed-{each}", each)
            made.feed()
            wrong = made.killed(made.expected(), chance=random.Random(each), rounds=5)
            found += [f"seed {each}: {one}" for one in wrong]
    return found, {"applications": number, "deaths": 5 * number}


def driver_and_engine(seed: int, scale: Scale) -> Outcome:
    """Applications on a broker, forty, tell what they tell in the driver."""
    found, number = list[str](), max(1, round(40 * scale))
    seeds = range(seed * 100, seed * 100 + number)
    with temporary_broker() as broker:
        for first in range(0, number, _TOGETHER):
            several = [
                kit.OnBroker(broker.connection, f"same-{each}", each)
                for each in seeds[first : first + _TOGETHER]
            ]
            with ExitStack() as stack:
                for made in several:
                    made.feed()
                    stack.enter_context(made.running())
                for made in several:
                    wrong = made.wait(made.expected())
                    found += [f"seed {made.plan.seed}: {one}" for one in wrong]
    return found, {"applications": number}


SCENARIOS: dict[str, Callable[[Any, Scale], Outcome]] = {
    scenario.__name__: scenario
    for scenario in (random_applications, random_applications_killed, driver_and_engine)
}


def run(name: str, seed: int, *, scale: Scale = 1.0) -> Outcome:
    """Play a scenario; return what is wrong, and facts worth telling."""
    return SCENARIOS[name](seed, scale)
