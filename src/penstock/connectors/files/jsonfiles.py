"""Files of JSON lines, CSV and Parquet as sinks: their options."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from penstock.connectors.connector import BatchLimits
from penstock.connectors.files.layouts import CSV, JSON_LINES, PARQUET, Layout, zipped
from penstock.connectors.files.written import WrittenFiles
from penstock.connectors.options import ConnectorOptions
from penstock.errors import Problem

__all__ = ["Compression", "csv_files", "json_files", "parquet_files"]

Compression: TypeAlias = Literal["none", "gzip"]

_SPAN = timedelta(minutes=1)
_SIZE = 16 << 20
_ROWS = 100_000
_MOST_ROWS = 10_000_000


def json_files(
    directory: str | Path,
    *,
    every: str | timedelta = _SPAN,
    size: str | int = _SIZE,
    rows: int = _ROWS,
    compress: Compression = "none",
) -> WrittenFiles:
    """Write the records of a stream as files of JSON lines, exactly once.

    A file holds records of one partition, in their order, and is there as a whole or not at all:
    ``<topic>-<partition>-<first offset>-<next offset>.jsonl``. Files may be moved away or deleted,
    but not between a crash of the sink and its next start. A second run of the sink on this machine
    waits until the first one has ended. Files of a topic that was created again are refused
    (``sink.beyond-end``) as long as the new one is shorter.

    Args:
        directory: Where the files are written; a relative path is looked up where the sink runs.
        every: How long the first record of a file waits for others.
        size: How large the records of a file are at most, before they are compressed.
        rows: How many records a file has at most.
        compress: ``"gzip"``: files end with ``.jsonl.gz``.

    Examples:
        >>> exported = app.sink("export", json_files("out", every="1m"), reads=alarms)
    """
    limits = {"every": every, "size": size, "rows": rows}
    return _files(
        "json_files", directory, JSON_LINES, words="JSON lines", compress=compress, **limits
    )


def csv_files(
    directory: str | Path,
    *,
    every: str | timedelta = _SPAN,
    size: str | int = _SIZE,
    rows: int = _ROWS,
    compress: Compression = "none",
) -> WrittenFiles:
    """Write the records of a stream as files of CSV, exactly once.

    The first row has the names of the fields. Texts are as they are, nulls are empty, anything else
    is JSON without quotes around it. Otherwise it is as ``json_files``.

    Args:
        directory: Where the files are written; a relative path is looked up where the sink runs.
        every: How long the first record of a file waits for others.
        size: How large the records of a file are at most, as JSON.
        rows: How many records a file has at most.
        compress: ``"gzip"``: files end with ``.csv.gz``.

    Examples:
        >>> listed = app.sink("listed", csv_files("out", every="1h"), reads=alarms)
    """
    limits = {"every": every, "size": size, "rows": rows}
    return _files("csv_files", directory, CSV, words="CSV", compress=compress, **limits)


def parquet_files(
    directory: str | Path,
    *,
    every: str | timedelta = _SPAN,
    size: str | int = _SIZE,
    rows: int = _ROWS,
) -> WrittenFiles:
    """Write the records of a stream as files of Parquet, exactly once.

    Columns have the types of the fields; values are compressed with Zstandard. Otherwise it is as
    ``json_files``. It needs ``pyarrow``, which ``penstock[spark]`` has.

    Args:
        directory: Where the files are written; a relative path is looked up where the sink runs.
        every: How long the first record of a file waits for others.
        size: How large the records of a file are at most, as JSON.
        rows: How many records a file has at most.

    Examples:
        >>> kept = app.sink("kept", parquet_files("out", every="10m", size="64MiB"), reads=alarms)
    """
    limits = {"every": every, "size": size, "rows": rows}
    return _files("parquet_files", directory, PARQUET, words="Parquet", compress="none", **limits)


def _files(
    name: str,
    directory: Any,
    layout: Layout,
    *,
    words: str,
    every: Any,
    size: Any,
    rows: Any,
    compress: Any,
) -> WrittenFiles:
    problems: list[Problem] = []
    options = ConnectorOptions(name, problems)
    if not isinstance(directory, str | Path):
        options.wrong("directory", f"{directory!r} is no path", f'name one: {name}("out")')
    limits = BatchLimits(
        rows=options.whole("rows", rows, _ROWS, least=1, most=_MOST_ROWS),
        size=options.size("size", size, _SIZE),
        span=options.positive_span("every", every, _SPAN),
    )
    packed = options.word("compress", compress, ("none", "gzip"), "none") == "gzip"
    return WrittenFiles(
        directory=Path(directory) if isinstance(directory, str | Path) else Path(),
        layout=zipped(layout) if packed else layout,
        limits=limits,
        words=words,
        problems=tuple(problems),
    )
