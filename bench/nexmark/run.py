"""Runs Nexmark queries as streams over a file of events, and writes down what they answer.

    python bench/nexmark/run.py EVENTS.jsonl --query q5 --out GOT.jsonl
    python bench/nexmark/run.py EVENTS.jsonl --query q4 --query q9 --out DIRECTORY
    python bench/nexmark/run.py EVENTS.jsonl --all --check

The events go into one topic of a broker that is started for it. Pipelines read them from there, by
Penstock's own engine, and write into topics, tables and the lake. A run ends by itself, when all
input is in and the watermark has passed it (see ``ending``). ``--check`` compares with the oracle,
and the exit code is 1 where they differ.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from each_bid import SIDE_INPUT, SIDE_ROWS
from ending import Ending
from feed import open_feed
from nexmark import FED_BY, QUERIES, nexmark
from oracle import Oracle
from pyspark.sql import SparkSession
from results import Row, result_rows

from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings, SparkSettings
from penstock.errors import PenstockError
from penstock.machine.places import Places
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.lake.table import lake_path
from penstock.pipelines.spark.session import session
from penstock.testing.broker import temporary_broker

DRIVER_MEMORY = "3g"
WORKERS = {"spark.python.authenticate.socketTimeout": "120s"}
"""Several queries at once start many workers, and a busy machine is slow to do so."""
TOGETHER = 4
"""How many queries run side by side in one Spark."""


@dataclass(frozen=True)
class Options:
    """How the queries run."""

    partitions: int = 2
    disorder: str = "30s"
    once: bool = True
    parts: int = 3


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Start Spark; it ends with the block and leaves nothing behind."""
    spark_settings = SparkSettings(driver_memory=DRIVER_MEMORY, options=dict(WORKERS))
    settings = replace(Settings(), spark=spark_settings)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as home,
        session(settings, Places(Path(home)), name="nexmark") as spark,
    ):
        yield spark


def answers(
    spark: SparkSession, events: Path, queries: Sequence[str], options: Options
) -> Iterator[tuple[str, list[Row]]]:
    """Run queries side by side over a file of events; yield the rows of each.

    They have a broker of their own, with one topic of events that ends once for all of them.
    """
    app = nexmark(partitions=options.partitions, disorder=options.disorder, once=options.once)
    graph, stop = verified(app.graph), threading.Event()
    names = [*dict.fromkeys(FED_BY[each] for each in queries if each in FED_BY), *queries]
    with (
        tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as home,
        temporary_broker() as broker,
        open_feed(broker.connection, graph, events, parts=options.parts) as feed,
    ):
        declare_application(graph, broker.connection)
        feed.send()
        sends = [*[feed.send] * (options.parts - 1), feed.end]
        ending = Ending(names, stop, sends=sends, passed=lambda: feed.passed)
        site = Site(
            settings=Settings(),
            places=Places(Path(home)),
            connection=broker.connection,
            stop=stop,
            report=ending.report,
        )
        fill_side_input(spark, site)
        run_pipelines(graph, names, site)
        for name, count in ending.dropped.items():
            if count:
                text = f"{name}: {count} rows came later than --disorder {options.disorder}"
                print(text, file=sys.stderr, flush=True)
        for query in queries:
            yield query, result_rows(graph, query, site, spark)


def fill_side_input(spark: SparkSession, site: Site) -> None:
    """Write the lake table that q13 looks things up in."""
    rows = spark.range(SIDE_ROWS).selectExpr("id as key", "cast(id as string) as value")
    rows.write.format("delta").save(lake_path(SIDE_INPUT, site))


def write_rows(rows: Sequence[Row], file: Path) -> None:
    """Write rows as JSON lines."""
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def run(given: argparse.Namespace) -> int:
    """Run the queries that were asked for; return how many were wrong."""
    options = Options(given.partitions, given.disorder, given.once, given.parts)
    queries = QUERIES if given.all else given.query
    many = len(queries) > 1
    oracle = Oracle(given.events) if given.check else None
    wrong = 0
    if many and given.out:
        given.out.mkdir(parents=True, exist_ok=True)
    with spark_session() as spark:
        for first in range(0, len(queries), given.together):
            began = time.monotonic()
            group = queries[first : first + given.together]
            for query, rows in answers(spark, given.events, group, options):
                if given.out:
                    write_rows(rows, given.out / f"{query}.jsonl" if many else given.out)
                found = oracle.compare(query, rows) if oracle else None
                wrong += found is not None and not found.same
                print(f"{query}: {found or f'{len(rows)} rows'}", flush=True)
            spent = time.monotonic() - began
            print(f"{len(group)} queries in {spent:.0f} s", file=sys.stderr, flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=Path, help="a file of the generator's lines")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--query", choices=QUERIES, action="append", help="may be repeated")
    which.add_argument("--all", action="store_true", help="every query")
    parser.add_argument(
        "--out", type=Path, help="the file of the rows; of several queries: a directory"
    )
    parser.add_argument("--check", action="store_true", help="compare with the oracle")
    parser.add_argument("--partitions", type=int, default=Options.partitions)
    parser.add_argument("--disorder", default=Options.disorder, help="how late an event may come")
    parser.add_argument(
        "--parts", type=int, default=Options.parts, help="in how many parts the input is sent"
    )
    parser.add_argument(
        "--once",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count an event that comes twice once",
    )
    parser.add_argument("--together", type=int, default=TOGETHER, help="queries side by side")
    given = parser.parse_args()
    try:
        return 1 if run(given) else 0
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
