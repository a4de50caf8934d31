"""The pane cases on the machine itself, in memory; its state is packed and unpacked every step.

Keys and values may be any JSON; the machine sees them as texts.
"""

import json
from typing import Any

from pane_match import PaneRow
from pane_rows import pane_rows

from penstock.core.aggregates.collect import Collect
from penstock.core.panes.machine import KeyState, Outcome, PaneMachine, Windowing
from penstock.core.panes.packing import pack, unpack
from penstock.core.panes.times import At


class DriverEngine:
    """One stream of one case."""

    def __init__(self, windowing: Windowing) -> None:
        self._machine = PaneMachine(windowing, Collect())
        self._keys: dict[str, bytes] = {}
        self._at = At()
        self._rows: list[PaneRow] = []
        self._dropped = 0

    def add(self, elements: list[tuple[int, Any, Any]]) -> None:
        by_key: dict[str, list[tuple[int, str]]] = {}
        for time, value, key in elements:
            by_key.setdefault(json.dumps(key), []).append((time, json.dumps(value)))
        for key, batch in by_key.items():
            state = unpack(self._keys.get(key, pack(KeyState())))
            self._keep(key, state, self._machine.add(state, batch, self._at))

    def watermark(self, time: int) -> None:
        self._advance(self._at._replace(watermark=max(time, self._at.watermark)))

    def clock(self, time: int) -> None:
        self._advance(self._at._replace(clock=max(time, self._at.clock)))

    def take_panes(self) -> list[PaneRow]:
        rows, self._rows = self._rows, []
        return rows

    def dropped(self) -> int:
        return self._dropped

    def close(self) -> None:
        self._keys.clear()

    def _advance(self, at: At) -> None:
        self._at = at
        for key, packed in list(self._keys.items()):
            state = unpack(packed)
            self._keep(key, state, self._machine.advance(state, at))

    def _keep(self, key: str, state: KeyState, outcome: Outcome) -> None:
        self._keys[key] = pack(state)
        self._dropped += len(outcome.late)
        for pane in outcome.panes:
            self._rows += pane_rows(key, pane, list)
