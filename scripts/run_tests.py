"""Runs all tests in four lanes side by side, which divide the modules among them (``lane.py``).

One lane begins with the tests of the shared Spark session, one with programs that start a Spark of
their own, one with tests that need a broker only, and one with those that need nothing. Each waits
a lot for something else: three lanes kept two cores busy three quarters of the time. The lines of
all lanes are printed as they come. A few tests that failed are run once more, alone: one that
passes then depends on what runs beside it, and is named as unstable. At the end follow what failed,
the ten slowest tests, the tests over the budget of their kind (CONTRIBUTING.md), the modules that
took most processor time, and how long everything took. Arguments are passed on to pytest.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from lane import ORDERS

LANE = Path(__file__).with_name("lane.py")
TOLD_AGAIN = ("FAILED ", "ERROR ")
SOME_FAILED = 1
"""Pytest's exit code where tests failed, and nothing else went wrong."""
NO_TESTS = 5
"""Pytest's exit code where arguments choose none."""
NOT_RUN = 6
"""Our own, where a test was collected and no lane ran it."""
MOST_AGAIN = 4
"""Of how many failed tests each may have another try; more have a common reason."""
SLOWEST = 10
BUSIEST = 20
BUDGETS = {"unit": 2.0, "broker": 20.0, "session": 30.0, "programs": 60.0}
"""How many seconds a test of each kind may take on a quiet machine."""


class Run:
    """One lane, its lines printed whole."""

    def __init__(self, kind: str, number: int, directory: Path, given: list[str]) -> None:
        self.name = f"lane {number} ({kind})"
        self.told: list[str] = []
        self.last = "it said nothing"
        words = [sys.executable, str(LANE), kind, str(number), str(directory)]
        cache = f"cache_dir=.pytest_cache/{kind}"
        self.process = subprocess.Popen(
            [*words, "-o", cache, *given], stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            print(line, end="", flush=True)
            if line.startswith(TOLD_AGAIN):
                self.told.append(line.rstrip())
            self.last = line.strip(" =\n") or self.last

    def wait(self) -> int:
        """Return pytest's exit code when it has ended."""
        self._reader.join()
        return self.process.wait()


@dataclass(frozen=True, slots=True)
class Test:
    """What one test took."""

    name: str
    kind: str
    seconds: float
    failed: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:6.1f} s  {self.name}"


class Notes:
    """What the lanes wrote down: which tests they found, and which of them ran."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.collected: set[str] = set()
        self.tests: list[Test] = []
        self.processor: dict[str, float] = {}
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                note = json.loads(line)
                if "collected" in note:
                    self.collected.update(note["collected"])
                elif "module" in note:
                    self.processor[note["module"]] = note["processor"]
                else:
                    self.tests.append(
                        Test(note["test"], note["kind"], note["seconds"], note["failed"])
                    )
        self.tests.sort(key=lambda each: each.seconds, reverse=True)

    def missing(self) -> list[str]:
        """Return the tests that were found and not run to their end."""
        return sorted(self.collected - {each.name for each in self.tests})

    def failed(self) -> list[str]:
        """Return the tests that failed, or whose fixtures did."""
        return sorted(each.name for each in self.tests if each.failed)

    def busiest(self) -> list[tuple[float, str]]:
        """Return processor time and name of the modules that took most of it."""
        found = sorted(((used, name) for name, used in self.processor.items()), reverse=True)
        return found[:BUSIEST]

    def over_budget(self) -> list[Test]:
        """Return the tests that took longer than a test of their kind may."""
        return [each for each in self.tests if each.seconds > BUDGETS[each.kind]]


class Clock:
    """How long the run took, and how busy the machine was meanwhile."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._idle = self._idle_seconds()

    @staticmethod
    def _idle_seconds() -> float:
        times = psutil.cpu_times()
        return float(times.idle + getattr(times, "iowait", 0.0))

    def __str__(self) -> str:
        took = time.monotonic() - self._began
        cores = os.cpu_count() or 1
        busy = max(0.0, took * cores - (self._idle_seconds() - self._idle))
        minutes, seconds = divmod(round(took), 60)
        return (
            f"{minutes} min {seconds} s; {busy / 60:.1f} minutes of processor time: "
            f"its {cores} cores were busy {busy / (took * cores):.0%} of it"
        )


def report(notes: Notes) -> None:
    """Print what was slow, and what did not run."""
    if notes.tests:
        print(f"the slowest {SLOWEST}:", *notes.tests[:SLOWEST], sep="\n")
    if over := notes.over_budget():
        print("warning: over the budget of their kind (CONTRIBUTING.md), if nothing else ran here:")
        print(*(f"{each}, budget {BUDGETS[each.kind]:g} s" for each in over), sep="\n")
    if busiest := notes.busiest():
        print("most processor time, without that of brokers:")
        print(*(f"{used:6.1f} s  {name}" for used, name in busiest), sep="\n")
    if missing := notes.missing():
        print(f"{len(missing)} tests did not run to their end:", *missing[:SLOWEST], sep="\n  ")


def main() -> int:
    """Run all lanes; return 0 where every test has passed."""
    clock = Clock()
    # The lanes and all that they start compile what they import once, and not each for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="penstock-lanes-") as directory:
        place = Path(directory)
        archive = write_archive()
        runs = [Run(kind, n, place, sys.argv[1:]) for n, kind in enumerate(ORDERS, start=1)]
        try:
            codes = [run.wait() for run in runs]
        except KeyboardInterrupt:  # which pytest has heard, too
            codes = [run.wait() for run in runs]
        if archive is not None:
            archive.terminate()  # by now it has ended, or nobody has a use for it
            archive.wait()
        notes = Notes(place.glob("lane-*.jsonl"))
    failed = notes.failed()
    unstable = failed if worth_another_try(codes, len(failed)) and pass_alone(failed) else []
    print()
    report(notes)
    for run, code in zip(runs, codes, strict=True):
        print(*run.told, sep="\n", end="\n" if run.told else "")
        print(f"{run.name}: {run.last} (exit code {code})")
    if unstable:
        print("warning: unstable, failed in a lane and passed alone; find out why:", *unstable)
        codes = [0 if code == SOME_FAILED else code for code in codes]
    print(f"{len(notes.tests)} tests in {clock}")
    return verdict(codes, len(notes.missing()))


def write_archive() -> "subprocess.Popen[bytes] | None":
    """Write the archive with which every Spark that starts later does so sooner, if there is none.

    It is for the tests of Penstock; others start no Spark.
    """
    if Path.cwd() != Path(__file__).parents[1]:
        return None
    options = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    command = [sys.executable, "-m", "penstock.cli", "jars", "archive"]
    return subprocess.Popen(command, env=os.environ | options)


def worth_another_try(codes: Sequence[int], failed: int) -> bool:
    """Tell whether a few tests failed, and nothing else went wrong."""
    return 0 < failed <= MOST_AGAIN and set(codes) <= {0, SOME_FAILED, NO_TESTS}


def pass_alone(names: Sequence[str]) -> bool:
    """Run tests with nothing beside them; tell whether all of them passed."""
    print(f"\nonce more, alone: {len(names)} failed", flush=True)
    options = [word for word in sys.argv[1:] if not Path(word.partition("::")[0]).exists()]
    return subprocess.call([sys.executable, "-m", "pytest", *options, *names]) == 0


def verdict(codes: Sequence[int], missing: int) -> int:
    """Return the exit code of a run by those of its lanes, and by how many tests were not run."""
    ran = [code for code in codes if code != NO_TESTS] or codes
    failed = next((code for code in ran if code), 0)
    return failed or (NOT_RUN if missing else 0)


if __name__ == "__main__":
    sys.exit(main())
