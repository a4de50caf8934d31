"""One of several runs of pytest that divide the modules of a test suite among them.

Every lane collects the tests it may run, and claims one module after the other until none is left.
A module is run by the lane that claimed it; the others pass over it. So all lanes end at about the
same time, however long their modules take, and fixtures of a session or a module work as in any
run.

    python scripts/lane.py KIND NUMBER DIRECTORY [pytest arguments]
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

__all__ = ["ORDERS", "Lane"]

SESSION, PROGRAMS, BROKER, UNIT = "session", "programs", "broker", "unit"
"""What a module needs: the shared Spark, programs that start a Spark, a broker, or nothing."""

ORDERS = {
    SESSION: (SESSION, PROGRAMS, BROKER),
    PROGRAMS: (PROGRAMS, SESSION, BROKER),
    BROKER: (BROKER, PROGRAMS),
    UNIT: (UNIT, BROKER, PROGRAMS),
}
"""What a lane of each kind claims, and in which order.

The last two start no shared Spark. Tests that need nothing run in the last one only: they are nine
in ten, and collecting them takes ten seconds.
"""

LONGEST_FIRST = (
    "test_nexmark",
    "test_pipelines",
    "test_windows",
    "test_standalone",
    "test_demo",
    "test_exactly_once",
    "test_joins",
    "test_history",
    "test_rebuild",
    "test_lake_deaths",
    "test_rollups",
    "test_operators",
    "test_broker",
    "test_cli_dev",
    "test_conformance",
    "test_sinks",
    "test_anomaly",
    "test_service_slow",
    "test_postgres_sink",
    "test_connectors",
    "test_serving_live_deaths",
)
"""Modules that take minutes. A lane that began one last would keep all others waiting."""


class Lane:
    """Runs the modules that it claims, and writes down how long each test took."""

    def __init__(self, kind: str, number: str, directory: Path) -> None:
        self._order = ORDERS[kind]
        self._claims = directory / "claims"
        self._claims.mkdir(exist_ok=True)
        self._notes = directory / f"lane-{number}.jsonl"
        self._kinds: dict[str, str] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out the folder of unit tests, most of all, where none of them will run."""
        unwanted = UNIT not in self._order and collection_path.name == UNIT
        return True if unwanted and collection_path.is_dir() else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests of the modules that no other lane has claimed."""
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest itself says what is wrong
        items = self._claimed(_by_module(session.items))
        item = next(items, None)
        used = processor_seconds()
        while item is not None:
            # The next one is known before this one runs: fixtures that both need are kept.
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if following is None or _module(following) != _module(item):
                before, used = used, processor_seconds()
                self._note({"module": _module(item), "processor": round(used - before, 2)})
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what the phases of a test took; write it down after the last, and if it failed."""
        name = report.nodeid
        self._seconds[name] += report.duration
        if report.failed:
            self._failed.add(name)
        if report.when == "teardown":
            kind, seconds = self._kinds[name], round(self._seconds.pop(name), 3)
            failed = name in self._failed
            self._note({"test": name, "kind": kind, "seconds": seconds, "failed": failed})

    def _claimed(self, modules: dict[str, list[pytest.Item]]) -> Iterator[pytest.Item]:
        kinds = {name: _kind(name, items) for name, items in modules.items()}
        self._kinds = {item.nodeid: kinds[name] for name in modules for item in modules[name]}
        self._note({"collected": list(self._kinds)})
        for wanted in self._order:
            names = [name for name, kind in kinds.items() if kind == wanted]
            for name in sorted(names, key=_turn):
                if self._claim(name):
                    yield from modules[name]

    def _claim(self, module: str) -> bool:
        try:
            (self._claims / module.replace("/", "+")).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _note(self, note: dict[str, Any]) -> None:
        with self._notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


def _by_module(items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
    found: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        found[_module(item)].append(item)
    return dict(found)


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def processor_seconds() -> float:
    """Return how much processor time this process has used, with all that it has started.

    Programs that somebody else keeps, such as embedded brokers, are not in it.
    """
    this = psutil.Process()
    seconds = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            seconds += sum(process.cpu_times()[:4])  # its own, and of those that have ended
        except psutil.NoSuchProcess:
            continue
    return seconds


def _kind(name: str, items: Sequence[pytest.Item]) -> str:
    if any("spark" in getattr(item, "fixturenames", ()) for item in items):
        return SESSION
    if any(item.get_closest_marker("spark") for item in items):
        return PROGRAMS
    if any(item.get_closest_marker("broker") for item in items) or "broker" in Path(name).parts:
        return BROKER
    return UNIT


def _turn(module: str) -> int:
    """Return the place of a module among those of its kind; all but the longest are equal."""
    name = Path(module).stem
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


def main() -> int:
    """Run one lane; return pytest's exit code."""
    kind, number, directory, *given = sys.argv[1:]
    return pytest.main(given, plugins=[Lane(kind, number, Path(directory))])


if __name__ == "__main__":
    sys.exit(main())
