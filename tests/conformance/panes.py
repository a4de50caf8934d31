"""Run a file of pane cases on an engine: ``python panes.py FILE --engine driver``.

The form of the cases is described at the head of ``panes.json``. The last line says how many
passed and failed; a failing case is named with what came and what was expected, or with the word
that is not in the form.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any, Protocol

from case_form import Case, Step, batches, bundlings, streams, time_of, understood, windowing_of
from pane_match import PaneRow, same


class Engine(Protocol):
    """Runs one stream of one case; time is in whole units."""

    def add(self, elements: list[tuple[int, Any, Any]]) -> None: ...
    def watermark(self, time: int) -> None: ...
    def clock(self, time: int) -> None: ...
    def take_panes(self) -> list[PaneRow]: ...
    def dropped(self) -> int: ...
    def close(self) -> None: ...


def run_step(engine: Engine, step: Step, size: int | None) -> Iterator[str]:
    """Run one step of one stream; yield what differs."""
    for word, value in step.items():
        match word:
            case "in":
                for batch in batches(step, size):
                    engine.add(batch)
            case "watermark":
                engine.watermark(time_of(value))
            case "clock":
                engine.clock(time_of(value))
            case "dropped" if (dropped := engine.dropped()) != value:
                yield f"dropped {dropped}, expected {value}"
            case "panes" if not same(panes := engine.take_panes(), value):
                yield f"\n      got      {json.dumps(panes)}\n      expected {json.dumps(value)}"


def run_case(case: Case, make: Any) -> list[str]:
    """Run a case with each of its bundlings, its streams at once; return what differs."""
    case = understood(case)
    windowing = windowing_of(case)
    wrong: list[str] = []
    for size in bundlings(case):
        engines = [make(windowing) for _ in streams(case)]
        try:
            for number, steps in enumerate(zip_longest(*streams(case))):
                for engine, step in zip(engines, steps, strict=True):
                    found = run_step(engine, step or {}, size)
                    wrong += [f"bundle {size}, step {number}: {text}" for text in found]
        finally:
            for engine in engines:
                engine.close()
    return wrong


def outcome(case: Case, make: Any) -> list[str]:
    """Return what differs; a case that cannot be run has failed, and the others go on."""
    try:
        return run_case(case, make)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this case's failure
        return [f"{type(error).__name__}: {error}"]


def engine_maker(name: str, cases: list[Case]) -> Any:
    """Return what makes the engine for a stream; Spark takes the steps of all at once, before."""
    if name == "driver":
        from driver_engine import DriverEngine

        return DriverEngine
    if name.startswith("service"):
        from service_engine import ServiceEngines

        return ServiceEngines(on_disk=name == ON_DISK).make
    from spark_engine import SparkEngines

    engines = SparkEngines()
    for case in cases:
        outcome(case, engines.make)
    engines.execute()
    return engines.make


ON_DISK = "service-on-disk"
SIDE_BY_SIDE = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--engine", choices=["driver", "spark", "service", ON_DISK], default="driver"
    )
    parser.add_argument("--case", help="only the case of this id")
    options = parser.parse_args()
    cases = json.loads(options.file.read_text(encoding="utf-8"))["cases"]
    chosen = [case for case in cases if options.case in (None, case.get("id"))]
    make = engine_maker(options.engine, chosen)
    failed = 0
    # On a broker a case is mostly waiting; elsewhere they run one after the other.
    with ThreadPoolExecutor(
        SIDE_BY_SIDE if options.engine.startswith("service") else 1
    ) as executor:
        outcomes = list(executor.map(lambda case: outcome(case, make), chosen))
    for case, wrong in zip(chosen, outcomes, strict=True):
        if wrong:
            failed += 1
            print(f"FAILED {case.get('id')}: {case.get('about', '')}")
            print(*(f"   {text}" for text in wrong), sep="\n")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
