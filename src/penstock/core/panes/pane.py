"""What comes out of the machine: panes, and elements that came too late."""

from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.panes.windows import Window

__all__ = ["LateElement", "Pane", "Timing"]

Timing = Literal["early", "on_time", "late"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """A result of one window, and what it withdraws: the results it takes the place of."""

    window: Window
    value: Any
    timing: Timing
    index: int
    """The number of the pane in its window, from 0."""
    on_time_index: int
    """Its number among the panes that are not early, from 0; -1 on early ones."""
    last: bool
    stamp: int
    """The event time the pane itself carries."""
    withdraws: tuple[tuple[Window, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class LateElement:
    """An element that a window did not take, because it had expired or was closed."""

    time: int
    value: Any
    window: Window
    reason: Literal["expired", "closed"]
    lateness: int
    """How far the watermark was past the element."""
    origin: Any = None
    """What names the element outside the machine: where it is on the log."""
