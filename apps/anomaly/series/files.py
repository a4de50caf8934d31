"""Scores series in files: CSV with ``timestamp`` and ``value`` in, ``anomaly_score`` out."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from datetime import datetime
from math import isfinite
from pathlib import Path

from apps.anomaly.series.detector import SeriesDetector

__all__ = ["SeriesError", "score_directory"]


class SeriesError(Exception):
    """A file is not a series; the message says where and why."""


def score_directory(source: Path, target: Path) -> int:
    """Score every CSV file under a directory into one of the same shape; return how many."""
    if not source.is_dir():
        raise SeriesError(f"{source} is not a directory")
    files = sorted(source.rglob("*.csv"))
    if not files:
        raise SeriesError(f"there is no CSV file under {source}")
    for file in files:
        print(f"{file.relative_to(source)}", file=sys.stderr, flush=True)
        _score_file(file, target / file.relative_to(source))
    return len(files)


def _score_file(source: Path, target: Path) -> None:
    """Write the scores beside the target first, so that no half-written file bears its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    detector = SeriesDetector()
    try:
        with partial.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["timestamp", "anomaly_score"])
            for text, at, value in _rows(source):
                writer.writerow([text, f"{detector.see(at, value).value:.9g}"])
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _rows(source: Path) -> Iterator[tuple[str, datetime, float]]:
    """Return each row: its instant as it was written, and as it was read, and its value."""
    with source.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if not {"timestamp", "value"} <= set(head):
            raise SeriesError(f"{source}: the first line has to name timestamp and value")
        when, what = head.index("timestamp"), head.index("value")
        for row in rows:
            if not row:
                continue
            try:
                value = float(row[what])
                at = datetime.fromisoformat(row[when])
            except (ValueError, IndexError) as error:
                raise SeriesError(f"{source}, line {rows.line_num}: {error}") from error
            if not isfinite(value):
                text = f"{row[what]} is not a number to score"
                raise SeriesError(f"{source}, line {rows.line_num}: {text}")
            yield row[when], at, value
