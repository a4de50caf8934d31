"""``python -m apps.anomaly``: what is beside the application.

python -m apps.anomaly simulate                plays devices, with faults and trouble on the way
python -m apps.anomaly demo                    shows all of it, and makes a report at the end
python -m apps.anomaly report [FILE]           makes an HTML report of what is on the topics
python -m apps.anomaly explain ID              computes a score of the past once more
python -m apps.anomaly ask                     scores the newest samples once more, over HTTP
python -m apps.anomaly score IN_DIR OUT_DIR    scores every series under IN_DIR
python -m apps.anomaly drives FILE             says which drives it would have alarmed at
python -m apps.anomaly train-drives FILE OUT   trains the model of drives, with Spark
"""

import argparse
import csv
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from apps.anomaly.devices import simulated
from apps.anomaly.devices.recording import RecordingError
from apps.anomaly.drives.files import DrivesError, read_days
from apps.anomaly.drives.model import MODEL, ModelError, load_model
from apps.anomaly.drives.replay import outcome, replay
from apps.anomaly.evidence.asking import asked
from apps.anomaly.evidence.explain import ExplainError, explain
from apps.anomaly.evidence.report import write
from apps.anomaly.evidence.running import APP, RunningError, penstock
from apps.anomaly.series.files import SeriesError, score_directory
from penstock.models import sealed

REPORT = Path("anomaly-report.html")
REFUSALS = (
    *(DrivesError, ExplainError, ModelError),
    *(simulated.PlanError, RecordingError, RunningError, SeriesError),
)


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        given.run(given)
    except (*REFUSALS, OSError) as error:
        print(f"anomaly: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="anomaly", description="Anomaly detection for devices.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    score = verbs.add_parser("score", help="score every series (timestamp, value) in a directory")
    score.add_argument("source", type=Path, metavar="IN_DIR")
    score.add_argument("target", type=Path, metavar="OUT_DIR")
    score.set_defaults(run=_score)
    drives = verbs.add_parser("drives", help="replay daily values of drives: one line per drive")
    drives.add_argument("file", type=Path, metavar="FILE")
    drives.add_argument("--model", type=Path, help="parameters; by default the shipped ones")
    drives.set_defaults(run=_drives)
    simulated.add_to(verbs)
    demo = verbs.add_parser("demo", help="show the application, and make a report at the end")
    demo.add_argument("--for", dest="span", metavar="SPAN", help="end after this time: 2m")
    demo.add_argument("--report", type=Path, default=REPORT, metavar="FILE")
    demo.set_defaults(run=_demo)
    report = verbs.add_parser("report", help="make an HTML report of what is on the topics")
    report.add_argument("target", type=Path, nargs="?", default=REPORT, metavar="FILE")
    report.set_defaults(run=_report)
    explained = verbs.add_parser("explain", help="compute a score of the past once more")
    explained.add_argument("id", metavar="ID", help="DEVICE/STARTED/NUMBER of a measurement")
    explained.set_defaults(run=_explain)
    ask = verbs.add_parser("ask", help="score the newest samples once more, over HTTP")
    ask.add_argument("--url", default="http://localhost:8800", help="where the gateway is")
    ask.add_argument("--most", type=int, default=200, help="so many samples")
    ask.set_defaults(run=_ask)
    train = verbs.add_parser("train-drives", help="train the model of drives, with Spark")
    train.add_argument("file", type=Path, metavar="FILE")
    train.add_argument("target", type=Path, metavar="OUT")
    train.add_argument("--version", type=int, default=1, help="the number of this version")
    train.set_defaults(run=_train)
    return parser


def _demo(given: argparse.Namespace) -> None:
    from apps.anomaly.demo import PARTS

    ends = ("--for", given.span) if given.span else ()
    only = [word for part in PARTS for word in ("--only", part)]
    command = penstock("dev", str(APP / "demo.py"), "--watch", "story", *only, *ends)
    running = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(APP.parents[1])})
    while running.poll() is None:
        with suppress(KeyboardInterrupt):  # it gets the same signal, and ends what it has started
            running.wait()
    write(given.report)
    print(f"the report is in {given.report}", file=sys.stderr)


def _report(given: argparse.Namespace) -> None:
    write(given.target)
    print(f"the report is in {given.target}", file=sys.stderr)


def _explain(given: argparse.Namespace) -> None:
    found = explain(given.id)
    print("\n".join(found.lines()))
    if not found.same:
        raise ExplainError("the score in the lake is another one")


def _ask(given: argparse.Namespace) -> None:
    print("\n".join(asked(given.url, most=given.most)))


def _score(given: argparse.Namespace) -> None:
    count = score_directory(given.source, given.target)
    print(f"{count} series scored into {given.target}", file=sys.stderr)


def _drives(given: argparse.Namespace) -> None:
    found = replay(read_days(given.file), load_model(given.model))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["serial_number", "alarm_date", "actions"])
    for drive in found.values():
        writer.writerow([drive.serial, drive.alarmed_on or "none", " ".join(drive.actions)])
    for line in outcome(found.values()).lines():
        print(line, file=sys.stderr)


def _train(given: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    from apps.anomaly.drives.training import train

    days = read_days(given.file)
    spark = SparkSession.builder.master("local[2]").appName("anomaly").getOrCreate()
    try:
        model = train(spark, days)
    finally:
        spark.stop()
    judged = outcome(replay(days, model).values())
    figures = {
        "found": judged.found / max(judged.failing, 1),
        "flagged": judged.flagged / max(judged.healthy, 1),
    }
    version = sealed(MODEL, given.version, model, trained_on=given.file.name, figures=figures)
    partial = given.target.with_name(f".{given.target.name}.partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(version), indent=1) + b"\n")
    partial.replace(given.target)
    print(f"{given.target}: version {version.version}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
