"""Recordings: a file that devices play in place of measuring; any CSV with a time in each row.

A column ``serial_number`` or ``device`` says which device a row is of; without it the whole file is
one device. Each other column with numbers is a metric. Times are kept as distances, so a year can
be played in a minute.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TextIO

from apps.anomaly.devices.fleet import Rows
from apps.anomaly.trend import MOST_METRICS

__all__ = ["RecordingError", "recorded"]

TIMES = ("timestamp", "date", "at")
NAMES = ("serial_number", "device")
MOST_ROWS = 5_000_000


class RecordingError(Exception):
    """A file that cannot be played, and why."""


def recorded(path: Path, *, speed: float) -> dict[str, Rows]:
    """Return what each device of a file plays; ``speed`` 60 plays an hour in a minute."""
    found: dict[str, list[tuple[datetime, dict[str, float]]]] = defaultdict(list)
    for number, (at, device, values) in enumerate(_rows(path)):
        if number >= MOST_ROWS:
            raise RecordingError(f"{path}: more than {MOST_ROWS:,} rows; cut it into pieces")
        found[device].append((at, values))
    if not found:
        raise RecordingError(f"{path}: no rows")
    begun = min(at for rows in found.values() for at, _ in rows)
    return {
        device: [
            ((at - begun).total_seconds() / speed, values) for at, values in sorted(rows, key=_at)
        ]
        for device, rows in sorted(found.items())
    }


def _at(row: tuple[datetime, dict[str, float]]) -> datetime:
    return row[0]


def _rows(path: Path) -> Iterator[tuple[datetime, str, dict[str, float]]]:
    with _opened(path) as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        time = next((name for name in TIMES if name in columns), None)
        if time is None:
            raise RecordingError(f"{path}: no column is called {' or '.join(TIMES)}")
        named = next((name for name in NAMES if name in columns), None)
        metrics = [name for name in columns if name not in {time, named}]
        try:
            for row in reader:
                values = {
                    f"app.{name}": value
                    for name in metrics
                    if (value := _number(row[name])) is not None
                }
                at = datetime.fromisoformat(row[time])
                at = at if at.tzinfo else at.replace(tzinfo=UTC)
                yield (
                    at,
                    row[named] if named else path.stem,
                    dict(list(values.items())[:MOST_METRICS]),
                )
        except (ValueError, csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            raise RecordingError(f"{path}, line {reader.line_num}: {error}") from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) else None
