"""Every Nexmark query over several seeds and kinds of disorder, compared with the oracle.

    python bench/nexmark/verify.py [--events 20000] [--seeds 11 12 13] [--together 8]

Exit code 1 if any answer differs; what differs is shown.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from generator import Disorder, event_lines
from nexmark import QUERIES
from oracle import Comparison, Oracle
from pyspark.sql import SparkSession
from run import TOGETHER, Options, answers, spark_session

__all__ = ["Case", "compared"]

CHECKED_PARTITIONS = (2, 1, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """One file of events, how late they may come, and into how many partitions they go."""

    events: int
    seed: int
    tps: int
    disorder: Disorder
    bound: str
    partitions: int = Options.partitions

    def write(self, file: Path) -> None:
        """Write the events."""
        lines = event_lines(self.events, seed=self.seed, tps=self.tps, disorder=self.disorder)
        with file.open("w", encoding="utf-8") as out:
            out.writelines(lines)


KINDS = (
    (1_000, Disorder(group=100, late=0.05, late_ms=3000, dup=0.02), "4s"),
    (10_000, Disorder(group=1000, late=0.2, late_ms=3000, dup=0.1), "10s"),
    (500, Disorder(group=50, late=0.01, late_ms=8000, dup=0.005), "9s"),
)
"""Events a second, how they are out of order, and the bound; one for each seed in turn."""


def compared(
    spark: SparkSession,
    case: Case,
    queries: Sequence[str],
    *,
    together: int = TOGETHER,
    parts: int = Options.parts,
) -> Iterator[tuple[str, Comparison]]:
    """Run queries over the events of a case; yield how the answer of each compares."""
    with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as directory:
        file = Path(directory) / "events.jsonl"
        case.write(file)
        oracle, options = Oracle(file), Options(case.partitions, case.bound, parts=parts)
        for first in range(0, len(queries), together):
            group = queries[first : first + together]
            for query, rows in answers(spark, file, group, options):
                yield query, oracle.compare(query, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--together", type=int, default=TOGETHER)
    given = parser.parse_args()
    wrong = 0
    with spark_session() as spark:
        for seed, (tps, disorder, bound), partitions in zip(
            given.seeds, cycle(KINDS), cycle(CHECKED_PARTITIONS), strict=False
        ):
            case = Case(given.events, seed, tps, disorder, bound, partitions)
            print(case, flush=True)
            for query, found in compared(spark, case, QUERIES, together=given.together):
                wrong += not found.same
                print(f"  {query}: {found}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
