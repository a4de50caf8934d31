"""Runs cases of filters, orders and live queries; prints ``N passed, M failed`` last.

    python tests/conformance/filters.py FILE --engine driver

The kind of a file is seen by the keys of its cases: ``steps`` are live queries, ``sort`` orders,
else filters. The engine ``core`` has neither a log nor a grid; ``driver`` and ``service`` have a
grid of ``--grid`` rows and as many columns.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys

from live_form import Case, Engine

ENGINES = ("core", "driver", "service")


def engine_of(name: str, grid: int) -> Engine:
    """Return what runs the cases."""
    if name == "core":
        from live_core import CoreEngine

        return CoreEngine()
    if name == "driver":
        from live_driver import DriverEngine

        return DriverEngine(grid)
    from live_service import ServiceEngine

    return ServiceEngine(grid)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=ENGINES, default="driver")
    parser.add_argument("--grid", type=int, default=3, help="rows and columns (3)")
    options = parser.parse_args()
    cases = [Case(given) for given in json.loads(options.file.read_text())["cases"]]
    engine = engine_of(options.engine, options.grid)
    try:
        outcomes = engine.run(cases)
    finally:
        engine.close()
    failed = 0
    for case, outcome in zip(cases, outcomes, strict=True):
        if not outcome.passed:
            failed += 1
            print(f"{case.id}: expected {outcome.expected}, found {outcome.found}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
