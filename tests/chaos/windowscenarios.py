"""Windows over hostile event times beside a recount: hundreds of scenes for each seed, no broker."""

import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

TESTS = Path(__file__).resolve().parents[1]
UNIT = SimpleNamespace(
    **runpy.run_path(str(TESTS / "unit" / "testing" / "test_driver_event_times.py"))
)
SCENES = 1000

Played = tuple[list[str], dict[str, object]]


class Unavailable(Exception):  # noqa: N818 - as the other scenarios call it
    """Never: everything that is needed is here."""


def event_times(seed: int, scale: float) -> Played:
    """Windows from the year 1 to 9999 in any order, with crashes, are those of a recount."""
    scenes = max(1, round(SCENES * scale))
    findings = []
    for number in range(seed * SCENES, seed * SCENES + scenes):
        try:
            UNIT.play(UNIT.times.wild(number), crashes=number % 2 == 0)
        except AssertionError as error:
            findings.append(f"scene {number}: {error}")
    return findings, {"scenes": scenes}


SCENARIOS: dict[str, Callable[[int, float], Played]] = {"event_times": event_times}


def run(name: str, seed: int, *, scale: float = 1.0) -> Played:
    """Play a scenario; return what is wrong, and what it did."""
    return SCENARIOS[name](seed, scale)
