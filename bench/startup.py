"""How long the word count takes to count: from `penstock dev` to the first row of both tables.

    python bench/startup.py [--runs 3]

Each run is a second start, as a user has it every day: packages and jars are there, and so is the
log of the run before.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[1] / "scripts" / "own_python.py"))

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time

from penstock.backbone.broker.plan import ClusterPlan
from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import PenstockError

APP = Path(__file__).parents[1] / "apps" / "wordcount"
TABLES = ("counts", "spark_counts")
LIMIT_SECONDS = 180


def written(home: Path, table: str) -> int:
    """Return how far a table's topic has come; 0 where it cannot be asked."""
    try:
        plan = ClusterPlan.from_json((home / "broker" / "broker.json").read_text("utf-8"))
        ends = Topics(Connection(plan.bootstrap, KafkaSettings())).ends(table)
    except (PenstockError, OSError):
        return 0
    return sum(high for _, high in ends.values())


def run(home: Path) -> dict[str, float]:
    """Start the word count, wait until both tables grow, stop it."""
    before: dict[str, int] = {}
    began = time.monotonic()
    command = [sys.executable, "-m", "penstock.cli", "--set", f"home={home}", "dev", str(APP)]
    with (home / "dev.out").open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    seconds: dict[str, float] = {}
    try:
        while len(seconds) < len(TABLES) and time.monotonic() - began < LIMIT_SECONDS:
            for table in TABLES:
                now = written(home, table)
                if now and table not in before:
                    before[table] = now
                elif table not in seconds and now > before.get(table, now):
                    seconds[table] = round(time.monotonic() - began, 1)
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGINT)
        stopping = time.monotonic()
        process.wait(60)
        seconds["stop"] = round(time.monotonic() - stopping, 1)
    return seconds


def main() -> int:
    """Run a first time to make the log, then print each further run as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="penstock-startup-") as directory:
        home = Path(directory)
        for number in range(runs + 1):
            print(json.dumps({"run": number, "seconds": run(home)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
