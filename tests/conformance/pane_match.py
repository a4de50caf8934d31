"""Whether the panes that came are the panes that a case expects."""

import json
import math
from typing import Any

__all__ = ["PaneRow", "same"]

PaneRow = dict[str, Any]


def same(got: list[PaneRow], expected: list[PaneRow]) -> bool:
    """Compare in order within a window, in any order between windows and between keys.

    A field that an expected pane leaves out is not checked, its key included.
    """
    if len(got) != len(expected):
        return False
    came = _by(got, "window", "key")
    return all(
        _shuffled(panes, [rows for name, rows in came.items() if name[0] == window])
        for (window,), panes in _by(expected, "window").items()
    )


def _by(panes: list[PaneRow], *names: str) -> dict[tuple[str, ...], list[PaneRow]]:
    groups: dict[tuple[str, ...], list[PaneRow]] = {}
    for pane in panes:
        groups.setdefault(tuple(_text(pane.get(name)) for name in names), []).append(pane)
    return groups


def _shuffled(expected: list[PaneRow], rows: list[list[PaneRow]]) -> bool:
    """Whether the expected panes are the rows of all keys, each key's in its order."""
    if not expected:
        return not any(rows)
    return any(
        _fits(row[0], expected[0])
        and _shuffled(expected[1:], [*rows[:index], row[1:], *rows[index + 1 :]])
        for index, row in enumerate(rows)
        if row
    )


def _fits(got: PaneRow, expected: PaneRow) -> bool:
    return all(_equal(name, got.get(name, False), value) for name, value in expected.items())


def _equal(name: str, got: Any, expected: Any) -> bool:
    if name == "values" and isinstance(got, list) and isinstance(expected, list):
        return sorted(map(_text, got)) == sorted(map(_text, expected))
    if isinstance(got, float) and isinstance(expected, int | float):
        return math.isclose(got, expected)
    return _text(got) == _text(expected)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
