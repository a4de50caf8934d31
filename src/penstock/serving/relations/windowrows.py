"""The windows that a service has open, as rows: group, window, and the results so far."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from penstock.core.expression.tree import Field as Named
from penstock.core.expression.values.plainvalues import annotation_of, to_plain
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.panes.windows import CountWindows, GlobalWindow
from penstock.core.records.keytext import key_reader
from penstock.core.records.schema import Field, Scalar, Schema
from penstock.core.rollup.reader import GroupKey
from penstock.core.rollup.resolve import Rollup
from penstock.errors import DataError

__all__ = ["WINDOWS", "WindowShape"]

WINDOWS = "windows"
"""What workers call this state."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


class WindowShape:
    """The columns of open windows, and what makes rows of a group with its windows.

    They have ``by`` fields, ``window_start`` and ``window_end``, the results, and
    ``window_closed``: whether the window takes no more records.
    """

    ranged = False
    """Groups have no order that a range of texts has."""

    def __init__(self, name: str, rollup: Rollup) -> None:
        groups = tuple(Field(name=group.name, type=group.type) for group in rollup.groups)
        results = tuple(
            Field(name=each.name, type=each.gives.type, nullable=True) for each in rollup.measures
        )
        self._by_count = isinstance(rollup.windowing.windows, CountWindows)
        self._bounded = not isinstance(rollup.windowing.windows, GlobalWindow)
        kind = Scalar("int" if self._by_count else "instant")
        bounds = tuple(
            Field(name=each, type=kind)
            for each in (("window_start", "window_end") if self._bounded else ())
        )
        closed = Field(name="window_closed", type=Scalar("bool"))
        key = tuple(group.name for group in rollup.groups)
        fields = (*groups, *bounds, *results, closed)
        self.keyed = Schema(name=name, fields=fields, key=key)
        self.schema = Schema(
            name=name, fields=fields, key=(*key, *(each.name for each in bounds[:1]))
        )
        of = [each.expression.root for each in rollup.groups]
        names = tuple(node.name for node in of if isinstance(node, Named))
        self.routed = not rollup.steps and names == rollup.schema.key and len(of) == len(names)
        """Whether a group is in the task that its key on the log leads to."""
        self._name = name
        self._groups = GroupKey(rollup.groups)
        self._plain = [to_plain(group.type) for group in rollup.groups]
        self._key = key_reader(self.keyed)
        types = [annotation_of(each.type) | None for each in results]
        kept: Any = tuple[int, int, tuple[tuple(types)], bool]  # type: ignore[misc]
        self._decoder = msgspec.json.Decoder(list[kept])
        self._row = msgspec.defstruct("Row", [each.name for each in fields], gc=False)

    def place(self, key: bytes) -> bytes:
        """Return the group, as its windows are found by, of a key on the log."""
        values = self._key(key)
        plain = [to(value) for to, value in zip(self._plain, values, strict=True)]
        return self._groups.pack(plain)

    def rows(self, key: bytes, value: bytes) -> Iterable[Any]:
        """Return the windows of a group; DataError: they are not what was declared."""
        try:
            groups = self._groups.unpack(key)
            windows = self._decoder.decode(value)
        except _UNREADABLE as error:
            text = f"not a window of {self._name}: {error}"
            raise DataError(text, code="state.unreadable") from error
        return [
            self._row(*groups, *self._bounds(start, end), *results, closed)
            for start, end, results, closed in windows
        ]

    def _bounds(self, start: int, end: int) -> tuple[int | datetime, ...]:
        if not self._bounded:
            return ()
        return (start, end) if self._by_count else (_instant(start), _instant(end))


def _instant(micros: int) -> datetime:
    """Return an instant; a window that reaches beyond the years 1 to 9999 is cut there."""
    return instant(min(max(micros, FIRST_MICROS), LAST_MICROS))
