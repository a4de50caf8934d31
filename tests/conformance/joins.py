"""Run a file of join cases on an engine: ``python joins.py FILE --engine driver``.

The form of the cases is described at the head of the file. A line is printed for each case that
failed, was skipped (it needs something that the engine does not offer) or is disputed (it rests on
a rule that Penstock did not choose, see docs/decisions/0043-joins.md). The last line says how many
passed and failed.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from join_form import Case, Declared, UnsupportedError, declare, feeds, marks
from join_match import Seen
from join_shown import shown

NOT_CHOSEN = {
    "late-joins",
    "late-null-at-once",
    "watermark-drops",
    "null-moves-time-only",
    "null-table-key",
}
"""Rules that systems disagree on, and that are not Penstock's."""
NOT_OFFERED = {"two-results"}
SEEDS = 5
"""How often the machines run each case, cut differently."""
SIDE_BY_SIDE = 12


class Run:
    """One case on one engine."""

    def __init__(self, declared: Declared, engine: Any) -> None:
        self._declared, self._engine = declared, engine
        self._case = declared.case
        self._seen = Seen(declared.case)
        self._fed: dict[str, list[Any]] = {}
        """By topic: the records of the case, None for a mark."""
        self._branches: dict[str, list[Any]] = {data.name: [] for data in declared.results}

    def differences(self) -> Iterator[str]:
        """Run it; yield what differs."""
        for number, step in enumerate(self._case["steps"]):
            self._feed(step)
            if self._engine.steps:
                if step.get("restart"):
                    self._engine.restart()
                self._take()
                yield from (f"step {number}: {text}" for text in self._check(step))
        if not self._engine.steps:
            self._take()
        yield from (f"final: {text}" for text in self._seen.check(self._case.get("final") or {}))
        dropped = self._engine.dropped() if "dropped" in self._case else None
        if dropped is not None:
            dropped -= marks(self._case, self._declared.inputs)
            if dropped != self._case["dropped"]:
                yield f"dropped {dropped}, expected {self._case['dropped']}"

    def _feed(self, step: Case) -> None:
        coming = list(feeds(self._declared, step))
        given = step.get("in", ())
        for number, each in enumerate(coming):
            row = given[number] if number < len(given) else None
            self._fed.setdefault(each.data.topic.name, []).append(row)
        self._engine.feed(coming)

    def _take(self) -> None:
        came = self._engine.take()
        results = [(raw[0].name, shown(self._declared, *raw)) for raw in came]
        for name, each in results:
            self._branches[name].append(each.value)
        self._seen.take([each for _, each in results])

    def _check(self, step: Case) -> Iterator[str]:
        yield from self._seen.check(step)
        branches = list(self._branches.values())
        if "branches" in step and branches != step["branches"]:
            yield f"branches: got {branches}, expected {step['branches']}"
        if "late" in step:
            late = [self._fed[topic][offset] for topic, offset in self._engine.late()]
            if sorted(map(json.dumps, late)) != sorted(map(json.dumps, step["late"])):
                yield f"late: got {late}, expected {step['late']}"


def outcome(
    case: Case, make: Callable[[Case], Iterator[tuple[Declared, Any]]]
) -> tuple[str, list[str]]:
    """Return what became of a case, and why."""
    missing = NOT_OFFERED & set(case.get("needs", ()))
    if missing:
        return "SKIPPED", [f"needs {', '.join(sorted(missing))}"]
    wrong: list[str] = []
    try:
        for declared, engine in make(case):
            try:
                wrong += Run(declared, engine).differences()
            finally:
                engine.close()
            if wrong:
                break
    except UnsupportedError as missing_feature:
        return "SKIPPED", [str(missing_feature)]
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        wrong = [f"{type(error).__name__}: {error}"]
    if not wrong:
        return "PASSED", []
    disputed = NOT_CHOSEN & set(case.get("rule", ()))
    if disputed:
        return "DISPUTED", [f"another rule than {', '.join(sorted(disputed))}", *wrong]
    return "FAILED", wrong


def engines(name: str) -> Callable[[Case], Iterator[tuple[Declared, Any]]]:
    """Return what yields the applications and engines that a case is run on."""
    if name == "machine":
        from join_machine import MachineEngine

        def machines(case: Case) -> Iterator[tuple[Declared, Any]]:
            for seed in range(SEEDS):
                declared = declare(case, on="services")
                yield declared, MachineEngine(declared, seed=seed)

        return machines
    if name == "driver":
        from join_driver import DriverEngine

        def drivers(case: Case) -> Iterator[tuple[Declared, Any]]:
            declared = declare(case, on="services")
            yield declared, DriverEngine(declared)

        return drivers
    if name == "service":
        from join_service import ServiceEngines

        return ServiceEngines().make
    from join_spark import SparkEngines

    return SparkEngines().make


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--engine", choices=["machine", "driver", "service", "spark"], default="machine"
    )
    parser.add_argument("--case", help="only the cases whose id contains this")
    parser.add_argument("--debug", action="store_true")
    options = parser.parse_args()
    cases = json.loads(options.file.read_text(encoding="utf-8"))["cases"]
    chosen = [case for case in cases if options.case is None or options.case in case["id"]]
    make = engines(options.engine)
    # On a broker and in Spark a case is mostly waiting; elsewhere one runs after the other.
    waits = options.engine in ("service", "spark")
    with ThreadPoolExecutor(SIDE_BY_SIDE if waits else 1) as executor:
        outcomes = list(executor.map(lambda case: outcome(case, make), chosen))
    counts: Counter[str] = Counter()
    for case, (became, why) in zip(chosen, outcomes, strict=True):
        counts[became] += 1
        if became != "PASSED":
            print(f"{became} {case['id']}: {case.get('about', '')}")
            print(*(f"   {text}" for text in why), sep="\n")
    print(f"{counts['DISPUTED']} disputed, {counts['SKIPPED']} skipped")
    print(f"{counts['PASSED']} passed, {counts['FAILED']} failed")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
