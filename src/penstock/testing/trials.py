"""Trials of connectors: what every source and sink must keep, tried without Kafka.

``try_source`` and ``try_sink`` run a connector as Penstock would, let the process die at random
steps, disturb the outside system where they are told how to, and compare what came of it.
"""

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from penstock.connectors import (
    AttachedConnector,
    Item,
    Moving,
    PositionedConnector,
    Reading,
    Row,
    RowsRefusedError,
    Writer,
    WritingConnector,
)
from penstock.core.app import App
from penstock.core.graph.parts import Sink
from penstock.core.records.codec import JsonCodec
from penstock.errors import TransientError

__all__ = ["try_sink", "try_source"]

_MOST_ITEMS = 100_000
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.02
_DEATHS = 0.2
_BATCH = 7

Contents = dict[str, list[Any]]


def try_source(
    connector: PositionedConnector | AttachedConnector,
    *,
    items: int | None = None,
    runs: int = 5,
    disturb: Callable[[], None] | None = None,
) -> Contents:
    r"""Read a positioned source to its end, again and again, and let it die on the way.

    It is read once without a disturbance. Then, for each run, it is closed at random steps, and
    opened at the position of a random item, as JSON gives that back. Each split must give the same
    items in the same order each time, once. An AssertionError says what is wrong.

    Args:
        connector: What is tried; what it reads must not change in the meantime.
        items: How many items there are, of a source that grows and so does not end.
        runs: How many disturbed runs are compared with the first.
        disturb: Makes the outside system fail for a moment, in the middle of a run: it closes
            connections, for example. TransientError of the connector is expected then.

    Returns:
        The contents of all items, by split.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from penstock.connectors import text_file
        >>> with TemporaryDirectory() as directory:
        ...     path = Path(directory) / "lines.txt"
        ...     count = path.write_text("one\ntwo\nthree\n")
        ...     try_source(text_file(path))
        {'': [b'one', b'two', b'three']}
    """
    opens = "attach" if hasattr(connector, "attach") else "open"
    _has(connector, "describe", "interactive", opens, what="a positioned source")
    first = _SourceRun(connector, items, random.Random(0), deaths=0, disturb=None).contents()  # noqa: S311
    for seed in range(1, runs + 1):
        chance = random.Random(seed)  # noqa: S311 - which step is random, and repeatable
        run = _SourceRun(connector, items, chance, deaths=_DEATHS, disturb=disturb)
        again = run.contents()
        for split in first.keys() | again.keys():
            _same(again.get(split, []), first.get(split, []), f"split {split!r}, run {seed}")
    return first


class _SourceRun:
    """One run of a source, over all its deaths."""

    def __init__(
        self,
        connector: PositionedConnector | AttachedConnector,
        items: int | None,
        chance: random.Random,
        *,
        deaths: float,
        disturb: Callable[[], None] | None,
    ) -> None:
        self._connector, self._items, self._chance = connector, items, chance
        self._deaths, self._disturb = deaths, disturb
        self._positions: dict[str, Any] = {}
        self._found: defaultdict[str, list[Any]] = defaultdict(list)
        self._ended: set[str] = set()

    def contents(self) -> Contents:
        """Read until everything was read."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            _require(time.monotonic() < until, f"it did not end within {_PATIENCE_SECONDS:g} s")
            try:
                with self._attached() as attached:
                    if self._read(attached, until):
                        return dict(self._found)
            except TransientError:
                time.sleep(_PAUSE_SECONDS)

    def _attached(self) -> AbstractContextManager[PositionedConnector]:
        if isinstance(self._connector, AttachedConnector):
            return self._connector.attach()
        return nullcontext(self._connector)

    def _read(self, connector: PositionedConnector, until: float) -> bool:
        """Read until the end, or until it dies; return whether that was the end."""
        _has(connector, "grows", "splits", "open", what="what is read")
        names = list(connector.splits())
        _require(len(set(names)) == len(names), f"a split is named twice: {names}")
        _require(all(isinstance(name, str) for name in names), "the name of a split is no text")
        open_now: dict[str, Reading[Any]] = {}
        try:
            for name in names:
                reading = connector.open(name, self._positions.get(name))
                _has(reading, "read", "ended", "position_after", "close", what="what open returns")
                open_now[name] = reading
            while not self._whole(names):
                _require(time.monotonic() < until, f"it did not end in {_PATIENCE_SECONDS:g} s")
                for name, reading in open_now.items():
                    if self._turn(name, reading):
                        return False
            return True
        finally:
            for reading in open_now.values():
                reading.close()

    def _whole(self, names: Iterable[str]) -> bool:
        if self._items is None:
            return self._ended.issuperset(names)
        return sum(map(len, self._found.values())) >= self._items

    def _turn(self, name: str, reading: Reading[Any]) -> bool:
        """Take what a split has; return whether the process died."""
        given: Sequence[Item] = reading.read()
        _require(len(given) <= _MOST_ITEMS, f"read gave {len(given)} items at once")
        for item in given:
            _require(isinstance(item, Item), f"read gave a {type(item).__name__}, which is no Item")
        if not given:
            if isinstance(reading, Moving) and (moved := reading.moved()) is not None:
                self._positions[name] = _as_json(moved)
            if reading.ended:
                self._ended.add(name)
            elif self._items is not None:
                time.sleep(_PAUSE_SECONDS)
            return False
        dies = self._chance.random() < self._deaths
        kept = given[: self._chance.randint(0, len(given))] if dies else given
        if kept:
            self._positions[name] = _as_json(reading.position_after(kept[-1]))
            self._found[name] += [item.content for item in kept]
        if self._disturb is not None and self._chance.random() < self._deaths:
            self._disturb()
        return dies


def try_sink(
    connector: Any,
    records: Sequence[Any],
    *,
    outside: Callable[[], Iterable[Any]],
    runs: int = 3,
    disturb: Callable[[], None] | None = None,
    clear: Callable[[], None],
) -> None:
    """Write records to an outside system, again and again, and let the process die on the way.

    The process dies before and after writes, and the next one goes on as Penstock does: from the
    positions of the writer, or from an offset that may be behind. A sink that is exactly once must
    have each record once, and keep a second run out; any other must have each at least once.
    An AssertionError says what is wrong.

    Args:
        connector: What is tried.
        records: Records of one type, which differ from each other.
        outside: Returns the records that are in the outside system, in any order.
        runs: How many runs are tried.
        disturb: Makes the outside system fail for a moment.
        clear: Empties the outside system before each run.

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from penstock.connectors import json_files
        >>> def lines() -> list[Reading]:
        ...     files = sorted(path.glob("[!.]*"))
        ...     rows = [json.loads(row) for file in files for row in file.read_text().splitlines()]
        ...     return [Reading(r["device"], datetime.fromisoformat(r["at"]), 0.0) for r in rows]
        >>> def clear() -> None:
        ...     for file in path.glob("[!.]*"):
        ...         file.unlink()
        >>> at = datetime(2026, 11, 19, tzinfo=UTC)
        >>> some = [Reading(f"d{n}", at, 0.0) for n in range(40)]
        >>> with TemporaryDirectory() as directory:
        ...     path = Path(directory)
        ...     try_sink(json_files(path), some, outside=lines, clear=clear)
    """
    _has(connector, "describe", "delivery", "limits", "open", what="a sink")
    app = App("trial")
    sink = app.sink("trial", connector, reads=app.stream("trials", type(records[0])))
    half, exactly = len(records) // 2, sink.delivery == "exactly_once"
    partitions = [list(records[:half]), list(records[half:])]
    if exactly:
        clear()
        _keeps_others_out(connector, sink, _rows(sink, partitions[0]))
    for seed in range(1, runs + 1):
        clear()
        chance = random.Random(seed)  # noqa: S311 - which step is random, and repeatable
        _SinkRun(connector, sink, partitions, chance, disturb=disturb).write()
        _all_there(list(outside()), records, exactly=exactly, what=f"run {seed}")


def _rows(sink: Sink, records: Sequence[Any]) -> list[Row]:
    codec: JsonCodec[Any] = JsonCodec(sink.reads.record)
    return [Row(each, codec.encode(each), n, key=codec.key(each)) for n, each in enumerate(records)]


def _keeps_others_out(connector: WritingConnector, sink: Sink, rows: Sequence[Row]) -> None:
    """Require that a second run cannot write beside the first."""
    first = connector.open(sink)
    try:
        second = connector.open(sink)
    except TransientError:
        first.close()
        return
    try:
        second.write(0, rows, len(rows))
        first.write(0, rows, len(rows))
    except TransientError:
        return
    finally:
        second.close()
        first.close()
    raise AssertionError("two runs of the sink wrote the same records")


class _SinkRun:
    """One run of a sink, over all its deaths."""

    def __init__(
        self,
        connector: WritingConnector,
        sink: Sink,
        partitions: Sequence[Sequence[Any]],
        chance: random.Random,
        *,
        disturb: Callable[[], None] | None,
    ) -> None:
        self._connector, self._sink, self._chance = connector, sink, chance
        self._disturb = disturb
        self._rows = [_rows(sink, own) for own in partitions]
        self._group: dict[int, int] = {}

    def write(self) -> None:
        """Write until everything is written."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            _require(time.monotonic() < until, f"it did not end within {_PATIENCE_SECONDS:g} s")
            try:
                writer = self._connector.open(self._sink)
            except TransientError:
                time.sleep(_PAUSE_SECONDS)
                continue
            _has(writer, "positions", "write", "close", what="what open returns")
            try:
                if self._write_on(writer):
                    return
            except TransientError:
                time.sleep(_PAUSE_SECONDS)
            finally:
                writer.close()

    def _write_on(self, writer: Writer) -> bool:
        """Write until the end, or until it dies; return whether that was the end."""
        written: Mapping[int, int] = dict(writer.positions())
        for partition, batch in self._batches(written):
            if self._disturb is not None and self._chance.random() < _DEATHS:
                self._disturb()
            if self._chance.random() < _DEATHS / 2:
                return False
            position = batch[-1].offset + 1
            try:
                writer.write(partition, batch, position)
            except RowsRefusedError as refused:
                raise AssertionError(f"records were refused: {refused.refusals}") from refused
            if written or self._sink.delivery == "exactly_once":
                now = writer.positions().get(partition, 0)
                _require(now == position, f"the position is {now} after rows up to {position}")
            if self._chance.random() < _DEATHS / 2:
                return False  # the group does not learn of the write
            self._group[partition] = position
        return True

    def _batches(self, written: Mapping[int, int]) -> Iterator[tuple[int, list[Row]]]:
        for partition, rows in enumerate(self._rows):
            start = max(written.get(partition, 0), self._group.get(partition, 0))
            while start < len(rows):
                end = start + self._chance.randint(1, _BATCH)
                yield partition, rows[start:end]
                start = end


def _as_json(position: Any) -> Any:
    """Return a position as it comes back from the log."""
    _require(position is not None, "a position is None")
    try:
        again = json.loads(json.dumps(position))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the position {position!r} is no JSON: {error}") from error
    _require(again == position, f"the position {position!r} comes back as {again!r}")
    return again


def _has(given: Any, *names: str, what: str) -> None:
    """Require that an object has what is asked of it before it is used."""
    missing = [name for name in names if not hasattr(given, name)]
    kind = type(given).__name__
    _require(not missing, f"{what} has {', '.join(names)}; {kind} has no {', '.join(missing)}")


def _same(found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    for number, (one, other) in enumerate(zip(found, expected, strict=False)):
        _require(one == other, f"{what}: item {number} is {one!r}, and was {other!r}")
    _require(
        len(found) == len(expected), f"{what}: {len(found)} items, and there were {len(expected)}"
    )


def _all_there(found: list[Any], records: Sequence[Any], *, exactly: bool, what: str) -> None:
    counts = Counter(map(repr, found))
    lost = [record for record in records if repr(record) not in counts]
    _require(not lost, f"{what}: lost {lost[:3]!r} and {max(len(lost) - 3, 0)} more")
    strange = counts.keys() - set(map(repr, records))
    _require(not strange, f"{what}: nobody wrote {sorted(strange)[:3]}")
    if exactly:
        twice = [record for record, count in counts.items() if count > 1]
        _require(not twice, f"{what}: more than once: {twice[:3]}")


def _require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)
