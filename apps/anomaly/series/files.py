"""Scores series in files: CSV with ``timestamp`` and ``value`` in, ``anomaly_score`` out.

A row without a value, or with ``nan``, scores 0, and nothing is learnt from it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from datetime import datetime
from math import isinf, isnan, nan
from pathlib import Path
from typing import Protocol

from apps.anomaly.series.detector import SeriesDetector

__all__ = ["SeriesError", "score_directory"]


class _Rows(Protocol):
    """A reader of CSV."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...
    def __next__(self) -> list[str]: ...


class SeriesError(Exception):
    """A file is not a series; the message says where and why."""


def score_directory(source: Path, target: Path) -> int:
    """Score every CSV file under a directory into one of the same shape; return how many.

    A SeriesError names the files that are none; the others are scored all the same.
    """
    if not source.is_dir():
        raise SeriesError(f"{source} is not a directory")
    files = sorted(file for file in source.rglob("*.csv") if file.is_file())
    if not files:
        raise SeriesError(f"there is no CSV file under {source}")
    refused: list[str] = []
    for file in files:
        print(f"{file.relative_to(source)}", file=sys.stderr, flush=True)
        try:
            _score_file(file, target / file.relative_to(source))
        except (SeriesError, OSError) as error:
            refused.append(str(error))
    if refused:
        several = f"{len(refused)} of {len(files)} files are not scored:\n  "
        raise SeriesError((several if len(files) > 1 else "") + "\n  ".join(refused))
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
                score = 0.0 if value is None else detector.see(at, value).value
                writer.writerow([text, f"{score:.9g}"])
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _rows(source: Path) -> Iterator[tuple[str, datetime, float | None]]:
    """Return each row: its instant as it was written, and as it was read, and its value."""
    with source.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        try:
            yield from _read(source, rows)
        except (UnicodeDecodeError, csv.Error) as error:
            raise SeriesError(f"{source}, behind line {rows.line_num}: {error}") from error


def _read(source: Path, rows: _Rows) -> Iterator[tuple[str, datetime, float | None]]:
    head = next(rows, [])
    if not {"timestamp", "value"} <= set(head):
        raise SeriesError(f"{source}: the first line has to name timestamp and value")
    when, what = head.index("timestamp"), head.index("value")
    for row in rows:
        if not row:
            continue
        place = f"{source}, line {rows.line_num}"
        if len(row) <= max(when, what):
            raise SeriesError(f"{place}: it has {len(row)} of {len(head)} columns")
        try:
            at = datetime.fromisoformat(row[when])
            value = float(row[what]) if row[what].strip() else nan
        except ValueError as error:
            raise SeriesError(f"{place}: {error}") from error
        if isinf(value):
            raise SeriesError(f"{place}: {row[what]} is not a number to score")
        yield row[when], at, None if isnan(value) else value
