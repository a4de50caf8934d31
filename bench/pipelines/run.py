"""``make bench-pipelines``: everything about pipelines that is measured, in one go.

    python bench/pipelines/run.py [--only flink panes ...] [--quick] [--out DIRECTORY]

Each benchmark is a process of its own. The table goes to standard output and, with the figures as
JSON, into the directory: ``results.md``, ``results.json``. Exit status 1 where one failed.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime

from figures import lines_of, table

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "artifacts" / "bench-pipelines"
BENCHMARKS: dict[str, tuple[list[str], list[str]]] = {
    "flink": ([], ["--rounds", "1", "--quick"]),
    "panes": ([], ["--rounds", "1", "--records", "1500000"]),
    "sink": ([], ["--rounds", "1", "--records", "1500000"]),
    "latency": ([], ["--seconds", "30"]),
    "cluster": ([], ["--records", "1000000"]),
    "bigstate": ([], ["--keys", "500000"]),
    "lookups": ([], ["--rows", "500000"]),
    "growth": (["--svg", str(HERE / "growth.svg")], ["--records", "100000"]),
}
"""What each is given, and what more where it must be quick."""


def measure(name: str, words: list[str]) -> tuple[object, float]:
    """Run one benchmark; return its figures (None: it failed) and the seconds it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        figures = Path(directory) / "figures.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(figures), *words]
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        found = json.loads(figures.read_text()) if figures.exists() else None
    if done.returncode:
        print(f"{name} ended with {done.returncode}", file=sys.stderr, flush=True)
    return found, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    results: dict[str, object] = {}
    failed = False
    for name in options.only:
        given, more = BENCHMARKS[name]
        print(f"-- {name}", file=sys.stderr, flush=True)
        found, seconds = measure(name, [*given, *(more if options.quick else [])])
        print(f"-- {name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        if found is None:
            failed = True
        else:
            results[name] = found
    stamp = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[2]:.1f}"
    shown = f"{stamp}, {os.cpu_count()} cores\n\n{table(lines_of(results))}\n"
    print(shown)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.md").write_text(shown, encoding="utf-8")
    (options.out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
