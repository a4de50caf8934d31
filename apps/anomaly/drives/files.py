"""Reads daily values of drives from a file: the columns of Backblaze's drive statistics."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from apps.anomaly.drives.features import DriveDay

__all__ = ["DrivesError", "read_days"]

_COLUMNS = (
    "serial_number",
    "model",
    "capacity_bytes",
    "smart_1_raw",
    "smart_5_raw",
    "smart_9_raw",
    "smart_197_raw",
)


class DrivesError(Exception):
    """A file does not hold daily values of drives; the message says where and why."""


def read_days(file: Path) -> list[tuple[DriveDay, bool]]:
    """Return each day of each drive, in order of time, and whether the drive failed on it."""
    try:
        rows = list(_rows(file))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise DrivesError(f"{file}: {error}") from error
    return sorted(rows, key=lambda row: row[0].at)


def _rows(file: Path) -> Iterator[tuple[DriveDay, bool]]:
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        missing = {"date", *_COLUMNS} - set(reader.fieldnames or ())
        if missing:
            raise DrivesError(f"{file}: the column {min(missing)} is missing")
        for row in reader:
            if None in row.values() or None in row:
                text = f"it has not {len(reader.fieldnames or ())} columns, as the first line has"
                raise DrivesError(f"{file}, line {reader.line_num}: {text}")
            try:
                yield _values(row), row.get("failure") == "1"
            except (TypeError, ValueError, OverflowError) as error:
                raise DrivesError(f"{file}, line {reader.line_num}: {error}") from error


def _values(row: dict[str, str]) -> DriveDay:
    serial, model, *numbers = (row[name] for name in _COLUMNS)
    capacity, errors, reallocated, hours, pending = (
        max(int(float(number or 0)), 0) for number in numbers
    )
    at = datetime.fromisoformat(row["date"]).replace(tzinfo=UTC)
    return DriveDay(serial, at, model, capacity, errors, reallocated, hours, pending)
