"""``make chaos``: every scenario with several seeds, and a verdict. Exit 1 where one is red."""

# ruff: noqa: T201 - a program of its own

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import sys
import time
from types import SimpleNamespace

from penstock.errors import PenstockError

HERE = Path(__file__).parent
KITS = [
    SimpleNamespace(**runpy.run_path(str(HERE / name)))
    for name in (
        "scenarios.py",
        "pipelinescenarios.py",
        "equivalencescenarios.py",
        "valuescenarios.py",
        "windowscenarios.py",
        "operatorscenarios.py",
    )
]
BY_NAME = {name: kit for kit in KITS for name in kit.SCENARIOS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", choices=sorted(BY_NAME), nargs="+", default=None)
    parser.add_argument("--scale", type=float, default=1.0, help="1: as promised; less: quicker")
    options = parser.parse_args()
    red = 0
    for name in options.only or BY_NAME:
        print(f"{name}: {BY_NAME[name].SCENARIOS[name].__doc__}", flush=True)
        for seed in options.seeds:
            red += not play(name, seed, options.scale)
    print("all green" if not red else f"{red} red")
    return 1 if red else 0


def play(name: str, seed: int, scale: float) -> bool:
    """Play one scenario; print its line; return whether it was green."""
    began, kit = time.monotonic(), BY_NAME[name]
    try:
        findings, facts = kit.run(name, seed, scale=scale)
    except kit.Unavailable as reason:
        print(f"  skipped: {reason}", flush=True)
        return True
    except (AssertionError, PenstockError) as error:
        findings, facts = [str(error)], {}
    told = ", ".join(f"{fact} {value}" for fact, value in facts.items())
    verdict = "red  " if findings else "green"
    print(f"  {verdict} seed {seed}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
    for finding in findings:
        print(f"        {finding}")
    return not findings


if __name__ == "__main__":
    sys.exit(main())
