"""Records of the log as people read them: decoded, in columns, as lines or as JSON."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.backbone.client.logrecord import LogRecord
from penstock.cli.screen.terminal import Terminal
from penstock.core.graph.data import OnLog
from penstock.core.printable import CELL_CHARACTERS, printable
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError

__all__ = ["Columns", "Shown", "as_json", "by_type", "plainly", "text_of"]

_CELL_LIMIT = 48
_MOST_COLUMNS = 64
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Shown:
    """A record with its value decoded; ``problem`` says why it could not be."""

    record: LogRecord
    value: Any
    problem: str = ""


def plainly(record: LogRecord) -> Shown:
    """Decode a value as JSON where it is, else as text, else as base64."""
    if record.value is None:
        return Shown(record, None)
    try:
        return Shown(record, msgspec.json.decode(record.value))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Shown(record, text_of(record.value))


def by_type(data: OnLog) -> Callable[[LogRecord], Shown]:
    """Return a decoder that checks each record against the type of its stream or table."""
    codec: JsonCodec[Any] = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)

    def decode(record: LogRecord) -> Shown:
        if record.value is None and data.kind == "table":
            return Shown(record, None)
        try:
            return Shown(record, msgspec.to_builtins(codec.accept(record.key, record.value)))
        except DataError as error:
            return Shown(record, plainly(record).value, f"{error.message} [{error.code}]")

    return decode


def text_of(data: bytes | None) -> str:
    """Return bytes as text; as base64 where they are no UTF-8."""
    if data is None:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"


def as_json(shown: Shown) -> dict[str, Any]:
    """Return a record as plain JSON values, all of it."""
    record = shown.record
    found = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at": record.timestamp_at.isoformat() if record.timestamp_at else None,
        "key": None if record.key is None else text_of(record.key),
        "value": shown.value,
        "headers": {name: text_of(value) for name, value in record.headers},
    }
    return found | {"problem": shown.problem} if shown.problem else found


class Columns:
    """Writes records as they come: in columns on a terminal, else in lines with tabs.

    Columns are as wide as what they have held so far, up to a limit; longer texts are cut, which
    ``--json`` and ``--raw`` never do.
    """

    def __init__(self, terminal: Terminal, *, headers: bool = False) -> None:
        self._terminal = terminal
        self._headers = headers
        self._names: tuple[str, ...] = ()
        self._widths: list[int] = []

    def write(self, shown: Shown) -> None:
        """Write one record; a heading first where its fields are other than before."""
        record = shown.record
        at = record.timestamp_at.isoformat(timespec="milliseconds") if record.timestamp_at else ""
        place = {"partition": str(record.partition), "offset": str(record.offset), "at": at}
        key = "null" if record.key is None else text_of(record.key)
        headers = record.headers if self._headers else ()
        extra = {name: text_of(value) for name, value in headers}
        if not self._terminal.draws:
            value = shown.problem or _compact(shown.value)
            texts = (*place.values(), key, value, *(f"{n}={v}" for n, v in extra.items()))
            self._terminal.row(texts)
            return
        if record.timestamp_at:
            local = record.timestamp_at.astimezone()
            place["at"] = local.strftime("%H:%M:%S.%f")[:-3]
        if shown.problem:
            fields = {"problem": shown.problem}
        elif isinstance(shown.value, dict):
            fields = {name: _compact(value) for name, value in shown.value.items()}
        else:
            fields = {"value": _compact(shown.value)}
        # Side by side: a field that is called "offset" does not stand in the place of the offset.
        own = [*place.items(), ("key", key), *fields.items()]
        cells = [*own, *((f"({name})", text) for name, text in extra.items())]
        if (more := len(cells) - _MOST_COLUMNS) > 0:
            cells = [*cells[:_MOST_COLUMNS], ("…", f"(+{more} fields)")]
        heads = tuple(printable(name, most=_CELL_LIMIT) for name, _ in cells)
        bodies = [printable(text, most=CELL_CHARACTERS) for _, text in cells]
        self._row(heads, bodies, bad=bool(shown.problem))

    def _row(self, names: tuple[str, ...], cells: Sequence[str], *, bad: bool) -> None:
        if names != self._names:
            self._names, self._widths = names, [len(name) for name in names]
            self._grow(cells)
            self._print(names, "bold")
        self._grow(cells)
        self._print(cells, "red" if bad else "")

    def _grow(self, cells: Iterable[str]) -> None:
        pairs = zip(self._widths, cells, strict=True)
        self._widths = [min(max(width, len(cell)), _CELL_LIMIT) for width, cell in pairs]

    def _print(self, cells: Sequence[str], style: str) -> None:
        pairs = zip(cells, self._widths, strict=True)
        # The last column has the rest of the line.
        texts = [*[_cut(cell, width).ljust(width) for cell, width in pairs][:-1], cells[-1]]
        self._terminal.console.print(_GAP.join(texts), style=style, soft_wrap=True)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
