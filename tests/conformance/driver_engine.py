"""The pane cases on the machine itself, in memory; its state is packed and unpacked every step."""

from typing import Any

from penstock.core.panes.aggregates import Collect
from penstock.core.panes.machine import KeyState, Outcome, PaneMachine, Windowing
from penstock.core.panes.packing import pack, unpack
from penstock.core.panes.times import At
from penstock.core.panes.windows import GLOBAL, Window

PaneRow = dict[str, Any]


class DriverEngine:
    """One stream of one case."""

    def __init__(self, windowing: Windowing) -> None:
        self._machine = PaneMachine(windowing, Collect())
        self._keys: dict[Any, bytes] = {}
        self._at = At()
        self._rows: list[PaneRow] = []
        self._dropped = 0

    def add(self, elements: list[tuple[int, Any, Any]]) -> None:
        by_key: dict[Any, list[tuple[int, Any]]] = {}
        for time, value, key in elements:
            by_key.setdefault(key, []).append((time, value))
        for key, batch in by_key.items():
            state = unpack(self._keys.get(key, pack(KeyState())))
            self._keep(key, state, self._machine.add(state, batch, self._at))

    def watermark(self, time: int) -> None:
        self._advance(self._at._replace(watermark=time))

    def clock(self, time: int) -> None:
        self._advance(self._at._replace(clock=time))

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

    def _keep(self, key: Any, state: KeyState, outcome: Outcome) -> None:
        self._keys[key] = pack(state)
        self._dropped += len(outcome.late)
        for pane in outcome.panes:
            self._rows += (
                _row(key, window, value, retract=True) for window, value in pane.withdraws
            )
            self._rows.append(
                _row(
                    key,
                    pane.window,
                    pane.value,
                    timing=pane.timing,
                    index=pane.index,
                    on_time_index=pane.on_time_index,
                    first=pane.first,
                    last=pane.last,
                    stamp=pane.stamp,
                )
            )


def _row(key: Any, window: Window, values: list[Any], **facts: Any) -> PaneRow:
    total = None if any(isinstance(value, str) for value in values) else sum(values)
    shown = None if window == GLOBAL else list(window)
    return {"key": key, "window": shown, "values": sorted(values), "sum": total, **facts}
