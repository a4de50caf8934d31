"""Run a file of pattern cases on an engine: ``python patterns.py FILE --engine driver``.

The form of the cases is described at the head of the file. The last line says how many passed and
failed; a failed case is named with what was expected and what came.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys
from typing import Any, Protocol

from pattern_form import Case, Outcome, differences, unsayable

ENGINES = ("machine", "driver", "service", "spark")
SIDE_BY_SIDE = ("service", "spark")
"""Engines that take all cases at once, and say themselves what went wrong with one."""


class Engine(Protocol):
    """Runs cases; each may be run several times, with an outcome each."""

    def run(self, cases: list[Case]) -> list[Any]: ...
    def close(self) -> None: ...


def make(name: str) -> Engine:
    """Return an engine by its name."""
    if name == "machine":
        from pattern_machine import MachineEngine

        return MachineEngine()
    if name == "driver":
        from pattern_driver import DriverEngine

        return DriverEngine()
    if name == "spark":
        from pattern_spark import SparkEngine

        return SparkEngine()
    from pattern_service import ServiceEngine

    return ServiceEngine()


def main() -> int:
    """Run the cases of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=ENGINES, default="driver")
    parser.add_argument("--case", help="only the case of this id")
    options = parser.parse_args()
    cases = json.loads(options.file.read_text(encoding="utf-8"))["cases"]
    chosen = [case for case in cases if options.case in (None, case.get("id"))]
    engine = make(options.engine)
    try:
        sayable = [case for case in chosen if unsayable(case) is None]
        together = options.engine in SIDE_BY_SIDE
        ran = iter(engine.run(sayable) if together else attempt(engine, sayable))
        outcomes = [_unsaid(case) if unsayable(case) else next(ran) for case in chosen]
    finally:
        engine.close()
    failed = 0
    for case, found in zip(chosen, outcomes, strict=True):
        wrong = [found] if isinstance(found, str) else _wrong(case, found)
        if wrong:
            failed += 1
            print(f"FAILED {case.get('id')}: {case.get('about', '')}")
            print(*(f"   {text}" for text in wrong), sep="\n")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


def attempt(engine: Engine, cases: list[Case]) -> list[Any]:
    """Return the outcomes of each case, or what went wrong with it; the others go on."""
    found: list[Any] = []
    for case in cases:
        try:
            found += engine.run([case])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this case's failure
            found.append(f"{type(error).__name__}: {error}")
    return found


def _unsaid(case: Case) -> Any:
    return [Outcome(errors=["pattern.step"])] if case.get("error") else unsayable(case)


def _wrong(case: Case, outcomes: list[Outcome]) -> list[str]:
    return list(dict.fromkeys(text for each in outcomes for text in differences(case, each)))


if __name__ == "__main__":
    sys.exit(main())
