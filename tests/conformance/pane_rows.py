"""A pane as the cases show it: a row for each withdrawal, then one for the pane itself."""

import json
from collections.abc import Iterator
from typing import Any

from pane_match import PaneRow

from penstock.core.panes.pane import Pane
from penstock.core.panes.windows import GLOBAL, Window

__all__ = ["pane_rows", "row"]


def pane_rows(key: str, pane: Pane, values: Any) -> Iterator[PaneRow]:
    """Yield the rows of a pane; ``values`` takes the texts out of what it and others hold."""
    for window, held in pane.withdraws:
        yield row(key, window, values(held), retract=True)
    yield row(
        key,
        pane.window,
        values(pane.value),
        timing=pane.timing,
        index=pane.index,
        on_time_index=pane.on_time_index,
        first=pane.index == 0,
        last=pane.last,
        stamp=pane.stamp,
    )


def row(key: str, window: Window | None, texts: list[str], **facts: Any) -> PaneRow:
    """Return a row; keys and values are JSON, so that they may be anything."""
    values = [json.loads(text) for text in texts]
    numbers = all(isinstance(value, int | float) for value in values)
    return {
        "key": json.loads(key),
        "window": None if window in (None, GLOBAL) else list(window),
        "values": values,
        "sum": sum(values) if numbers else None,
        **facts,
    }
