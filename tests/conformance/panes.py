"""Run a file of pane cases on an engine: ``python panes.py FILE --engine driver``.

The form of the cases is described at the head of ``panes.json``. The last line says how many
passed and failed; a failing case is named with what came and what was expected.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from penstock.core.panes.machine import Windowing
from penstock.core.panes.times import BEGINNING, END
from penstock.core.panes.triggers import (
    DEFAULT,
    AfterCount,
    AfterDelay,
    AfterWatermark,
    AllOf,
    AnyOf,
    InOrder,
    Never,
    Repeat,
    Trigger,
    Until,
)
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
    WindowKind,
)

Case = dict[str, Any]
PaneRow = dict[str, Any]


class Engine(Protocol):
    """Runs one stream of one case; time is in whole units."""

    def add(self, elements: list[tuple[int, Any, Any]]) -> None: ...
    def watermark(self, time: int) -> None: ...
    def clock(self, time: int) -> None: ...
    def take_panes(self) -> list[PaneRow]: ...
    def dropped(self) -> int: ...
    def close(self) -> None: ...


def windows_of(spec: dict[str, Any]) -> WindowKind:
    match spec:
        case {"kind": "fixed", "size": size}:
            return FixedWindows(size, spec.get("offset", 0))
        case {"kind": "sliding", "size": size, "period": period}:
            return SlidingWindows(size, period, spec.get("offset", 0))
        case {"kind": "sessions", "gap": gap}:
            return SessionWindows(gap)
        case {"kind": "count", "size": size}:
            return CountWindows(size)
        case {"kind": "global"}:
            return GlobalWindow()
    raise ValueError(f"no such window: {spec}")


def trigger_of(spec: Any) -> Trigger:
    ((name, inner),) = spec.items() if isinstance(spec, dict) else [(spec, {})]
    if name in {"never", "default"}:
        return Never() if name == "never" else DEFAULT
    match name:
        case "watermark":
            parts = {when: trigger_of(each) for when, each in (inner or {}).items()}
            return AfterWatermark(parts.get("early"), parts.get("late"))
        case "count" | "delay":
            return {"count": AfterCount, "delay": AfterDelay}[name](inner)
        case "repeat":
            return Repeat(trigger_of(inner))
        case "any" | "all" | "each" | "until":
            kinds = {"any": AnyOf, "all": AllOf, "each": InOrder, "until": Until}
            return kinds[name](tuple(trigger_of(each) for each in inner))
    raise ValueError(f"no such trigger: {spec}")


def windowing_of(case: Case) -> Windowing:
    return Windowing(
        windows=windows_of(case["window"]),
        trigger=trigger_of(case["trigger"]),
        mode=case["mode"],
        lateness=time_of(case["lateness"]),
        stamp=case.get("stamp", "end"),
        final_pane=case.get("final_pane", "if_new"),
        on_time_pane=case.get("on_time_pane", "always"),
    )


def time_of(value: Any) -> int:
    return {"inf": END, "-inf": BEGINNING}.get(value, value)


def bundlings(case: Case) -> list[int | None]:
    """Every bundle size that the case lists; all must give the same panes."""
    sizes = [size for step in case["steps"] for size in step.get("bundle", ())]
    return list(dict.fromkeys(sizes)) or [None]


def batches(step: dict[str, Any], size: int | None) -> Iterator[list[tuple[int, Any, Any]]]:
    elements = [(each[0], each[1], each[2] if len(each) > 2 else None) for each in step["in"]]
    if size is None or "bundle" not in step:
        yield elements
        return
    if size < 0:
        elements.reverse()
    for start in range(0, len(elements), abs(size)):
        yield elements[start : start + abs(size)]


def run_steps(engine: Engine, steps: list[dict[str, Any]], size: int | None) -> list[str]:
    """Run one stream; return what differs."""
    wrong: list[str] = []
    for number, step in enumerate(steps):
        if "in" in step:
            for batch in batches(step, size):
                engine.add(batch)
        elif "watermark" in step:
            engine.watermark(time_of(step["watermark"]))
        elif "clock" in step:
            engine.clock(step["clock"])
        elif "dropped" in step:
            if (got := engine.dropped()) != step["dropped"]:
                wrong.append(f"step {number}: dropped {got}, expected {step['dropped']}")
        elif "panes" in step and not same(got_panes := engine.take_panes(), step["panes"]):
            wrong.append(
                f"step {number}:\n      got      {json.dumps(got_panes)}"
                f"\n      expected {json.dumps(step['panes'])}"
            )
    return wrong


def same(got: list[PaneRow], expected: list[PaneRow]) -> bool:
    """Compare in order within a window (and key), in any order between windows."""
    if len(got) != len(expected):
        return False
    left = grouped(got)
    for group, panes in grouped(expected).items():
        candidates = [
            rows for key, rows in left.items() if key[0] == group[0] and group[1] in (None, key[1])
        ]
        if not any(len(rows) == len(panes) and all(map(fits, rows, panes)) for rows in candidates):
            return False
    return True


def grouped(panes: list[PaneRow]) -> dict[tuple[str, Any], list[PaneRow]]:
    groups: dict[tuple[str, Any], list[PaneRow]] = {}
    for pane in panes:
        groups.setdefault((json.dumps(pane.get("window")), pane.get("key")), []).append(pane)
    return groups


def fits(got: PaneRow, expected: PaneRow) -> bool:
    return all(got.get(name, False) == value for name, value in expected.items())


def run_case(case: Case, make: Any) -> list[str]:
    """Run a case with each of its bundlings; return what differs."""
    wrong: list[str] = []
    streams = [case["steps"], *([case["other_stream"]] if "other_stream" in case else [])]
    for size in bundlings(case):
        engines = [make(windowing_of(case)) for _ in streams]
        try:
            for engine, steps in zip(engines, streams, strict=True):
                wrong += [f"bundle {size}: {text}" for text in run_steps(engine, steps, size)]
        finally:
            for engine in engines:
                engine.close()
    return wrong


def engine_maker(name: str) -> Any:
    if name == "driver":
        from driver_engine import DriverEngine

        return DriverEngine
    raise SystemExit(f"no such engine: {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=["driver"], default="driver")
    parser.add_argument("--case", help="only the case of this id")
    options = parser.parse_args()
    cases = json.loads(options.file.read_text(encoding="utf-8"))["cases"]
    make = engine_maker(options.engine)
    failed = 0
    chosen = [case for case in cases if options.case in (None, case["id"])]
    for case in chosen:
        if wrong := run_case(case, make):
            failed += 1
            print(f"FAILED {case['id']}: {case.get('about', '')}")
            print(*(f"   {text}" for text in wrong), sep="\n")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
