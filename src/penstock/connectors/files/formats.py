"""Files of lines, JSON lines, CSV and Parquet, compressed or not, as items with their places."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from penstock.connectors.connector import Item
from penstock.errors import ConfigurationError, DataError

__all__ = ["FORMATS", "FileItem", "Format", "read_items"]

Format: TypeAlias = Literal["lines", "json", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("lines", "json", "csv", "parquet")

_SKIP = 1 << 20
_ROWS = 1_000


class FileItem(Item, frozen=True, gc=False):
    """A line or a row; ``at`` is its number."""

    end: int = 0
    """Where the next one begins: bytes after decompression, or rows."""
    trouble: str = ""

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return DataError(self.trouble, code="data.file-broken") if self.trouble else None


def read_items(
    file: BinaryIO, path: Path, kind: Format, *, start: tuple[int, int], most: int
) -> Iterator[FileItem]:
    """Yield the items of a file from a place on: bytes or rows, and how many items were before.

    Where the file is broken, the last item says so, and has a fault.
    """
    at, number = start
    last = (at, number)
    try:
        for item in _items(file, path, kind, at=at, number=number, most=most):
            last = (item.end, item.at + 1)
            yield item
    except ConfigurationError:
        raise
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, csv.Error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        trouble = f"{path.name} is broken behind item {last[1]}: {error}; the rest was not read"
        # Behind everything: it is not tried again.
        yield FileItem(path.name.encode(), last[1], 1 << 62, trouble)


def _items(
    file: BinaryIO, path: Path, kind: Format, *, at: int, number: int, most: int
) -> Iterator[FileItem]:
    if at >= 1 << 62:
        return
    if kind == "parquet":
        yield from _parquet(file, at)
        return
    stream = _decompressed(file, path)
    if kind == "csv":
        yield from _csv(stream, at, number, most)
        return
    _skip(stream, at)
    for content, length in _lines(stream, most):
        at += length
        trouble = ""
        if len(content) > most:
            trouble = f"the line has more than the {most} bytes that are allowed"
            content = content[:most]  # noqa: PLW2901 - what is kept of it
        yield FileItem(content, number, at, trouble)
        number += 1


def _decompressed(file: BinaryIO, path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if path.suffix == ".zst":
        opened: Any = _pyarrow("Zstandard").input_stream(file, compression="zstd")
        return io.BufferedReader(opened)
    return file


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigurationError(
            f"{what} needs a library that is not installed",
            code="connector.missing",
            detail=str(error),
            hint="pip install 'penstock[spark]', or pyarrow alone",
        ) from error
    return pa


def _skip(stream: BinaryIO, count: int) -> None:
    if count and stream.seekable():
        with suppress(OSError, ValueError):
            stream.seek(count)
            return
    while count > 0:
        data = stream.read(min(count, _SKIP))
        if not data:
            raise EOFError("it is shorter than it was")
        count -= len(data)


def _lines(stream: BinaryIO, most: int) -> Iterator[tuple[bytes, int]]:
    """Yield lines without their ends, and their lengths with them; of a long one the beginning."""
    while piece := stream.readline(most + 3):
        length, content = len(piece), piece
        while not piece.endswith(b"\n") and len(piece) == most + 3:
            piece = stream.readline(most + 3)
            length += len(piece)
        yield content.removesuffix(b"\n").removesuffix(b"\r"), length


def _csv(stream: BinaryIO, at: int, number: int, most: int) -> Iterator[FileItem]:
    place = 0

    def texts() -> Iterator[str]:
        nonlocal place
        while line := stream.readline(most + 1):
            if len(line) > most:
                raise ValueError(f"a line has more than the {most} bytes that are allowed")
            place += len(line)
            yield line.decode("utf-8-sig" if place == len(line) else "utf-8", "surrogateescape")

    header = next(csv.reader(texts()), None)
    if header is None:
        return
    if at > place:
        _skip_to(stream, at, place)
        place = at
    for values in csv.reader(texts()):
        if not values:
            continue
        trouble = ""
        if len(values) != len(header):
            trouble = f"the row has {len(values)} values, the first row has {len(header)}"
        yield FileItem(dict(zip(header, values, strict=False)), number, place, trouble)
        number += 1


def _skip_to(stream: BinaryIO, at: int, place: int) -> None:
    if stream.seekable():
        stream.seek(at)
        return
    _skip(stream, at - place)


def _parquet(file: BinaryIO, at: int) -> Iterator[FileItem]:
    _pyarrow("Parquet")
    from pyarrow import ArrowInvalid, parquet

    try:
        source = parquet.ParquetFile(file)
    except ArrowInvalid as error:
        raise ValueError(str(error)) from error
    row = 0
    groups: list[int] = []
    for group in range(source.num_row_groups):
        count = source.metadata.row_group(group).num_rows
        if groups or row + count > at:
            groups.append(group)
        else:
            row += count
    for batch in source.iter_batches(_ROWS, row_groups=groups):
        for values in batch.to_pylist():
            if row >= at:
                yield FileItem(values, row, row + 1)
            row += 1
