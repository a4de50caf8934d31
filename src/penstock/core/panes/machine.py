"""The pane machine: elements, watermark and clock in; panes and late elements out.

It is pure and deterministic, and all it knows about a key is a :class:`KeyState`, which an engine
keeps wherever it keeps state. A batch of elements is one moment: they are all in before a trigger
is asked. What happens to a window, in order: it opens with its first element; it gives panes as
its trigger says; it *ends* when the watermark reaches its end, is *closed* when its trigger has
finished, and *expires* when the watermark reaches its end plus the allowed lateness, with a final
pane for what no pane has shown. An element for a closed or expired window is late and is returned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from penstock.core.panes.combiner import Combiner
from penstock.core.panes.pane import LateElement, Pane, Timing
from penstock.core.panes.times import END, At, plus
from penstock.core.panes.triggers import DEFAULT, Scene, Trigger, TriggerState
from penstock.core.panes.windows import (
    CountWindows,
    SessionWindows,
    Window,
    WindowKind,
    joined,
)

__all__ = ["Element", "KeyState", "Outcome", "PaneMachine", "Partial", "WindowState", "Windowing"]

Element = tuple[int, Any] | tuple[int, Any, Any]
"""Event time, value, and what names the element where it turns out to be late."""


class Partial(NamedTuple):
    """Elements of one window that were combined before they came here, as an engine may."""

    window: Window
    held: Any
    times: Sequence[int]
    origins: Sequence[int]
    source: str = ""
    """With each of the origins, what names an element: where it is on the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowing:
    """What to do: windows, trigger, accumulation, lateness."""

    windows: WindowKind
    trigger: Trigger = DEFAULT
    mode: Literal["discarding", "accumulating", "retracting"] = "accumulating"
    lateness: int = 0
    stamp: Literal["end", "earliest", "latest"] = "end"
    final_pane: Literal["if_new", "always"] = "if_new"
    on_time_pane: Literal["always", "if_new"] = "always"


@dataclass(slots=True)
class WindowState:
    """One window of one key."""

    held: Any
    trigger: TriggerState
    unseen: int = 0
    """Elements that no pane has shown yet."""
    panes: int = 0
    settled: int = 0
    """Panes that were not early."""
    ended: bool = False
    closed: bool = False
    hold: int | None = None
    """The stamp of the pane to come; None: every element that is in it was behind the watermark."""
    live: list[tuple[Window, Any]] = field(default_factory=list)
    """Values given out and not withdrawn; kept in retracting mode only."""


@dataclass(slots=True)
class KeyState:
    """Everything the machine remembers about one key."""

    windows: dict[Window, WindowState] = field(default_factory=dict)
    ordinal: int = 0
    """How many elements the key has had; kept for count windows only."""


@dataclass(slots=True)
class Outcome:
    """What one step gave."""

    panes: list[Pane] = field(default_factory=list)
    late: list[LateElement] = field(default_factory=list)


class PaneMachine:
    """One windowing with one combiner; holds no state of its own."""

    def __init__(self, windowing: Windowing, combiner: Combiner[Any, Any, Any]) -> None:
        self._windowing = windowing
        self._combiner = combiner
        self._trigger = windowing.trigger
        self._kind = windowing.windows
        self._by_count = isinstance(windowing.windows, CountWindows)
        self._lateness = windowing.lateness

    def add(self, key: KeyState, elements: Iterable[Element], at: At) -> Outcome:
        """Take one batch of elements of one key, then ask the triggers of the windows in it."""
        outcome = Outcome()
        if isinstance(self._kind, CountWindows):
            self._add_counted(self._kind, key, elements, at, outcome)
            return outcome
        batch: dict[Window, list[Element]] = {}
        for element in elements:
            for window in self._kind.of(element[0]):
                if at.watermark >= self._expiry(window):
                    outcome.late.append(_late(element, window, "expired", at))
                else:
                    batch.setdefault(window, []).append(element)
        if isinstance(self._kind, SessionWindows):
            batch = self._merge(key, batch, at, outcome)
        for window, accepted in batch.items():
            state = key.windows.get(window)
            if state is None:
                state = key.windows[window] = self._open(window, at)
            if state.closed:
                outcome.late += (_late(element, window, "closed", at) for element in accepted)
            else:
                self._take(window, state, accepted, at)
        for window in batch:
            self._ask(key, window, at, outcome)
        return outcome

    def add_partials(self, key: KeyState, partials: Iterable[Partial], at: At) -> Outcome:
        """Take one batch of elements that were combined by window: as :meth:`add`, but faster.

        Not for sessions and count windows, where an element's window depends on the others.
        """
        outcome = Outcome()
        touched: dict[Window, None] = {}
        for partial in partials:
            window = partial.window
            if at.watermark >= self._expiry(window):
                outcome.late += _late_partial(partial, "expired", at)
                continue
            state = key.windows.get(window)
            if state is None:
                state = key.windows[window] = self._open(window, at)
            if state.closed:
                outcome.late += _late_partial(partial, "closed", at)
            else:
                state.held = self._combiner.merge(state.held, partial.held)
                self._count(window, state, partial.times, at)
                touched[window] = None
        for window in touched:
            self._ask(key, window, at, outcome)
        return outcome

    def advance(self, key: KeyState, at: At) -> Outcome:
        """Follow the watermark and the clock: ends, expiries and delays that are due."""
        outcome = Outcome()
        for window, state in sorted(key.windows.items()):
            deadline = None if state.closed else self._trigger.deadline(state.trigger)
            if at.watermark >= self._expiry(window):
                self._expire(key, window, at, outcome)
            elif not state.ended and at.watermark >= self._end(window):
                self._ask(key, window, at, outcome)
                state.ended = True
            elif deadline is not None and at.clock > deadline:
                self._ask(key, window, at, outcome)
        return outcome

    def wakes(self, key: KeyState) -> At:
        """Return the earliest watermark and clock at which :meth:`advance` has work to do."""
        watermark, clock = END, END
        for window, state in key.windows.items():
            watermark = min(watermark, self._expiry(window) if state.ended else self._end(window))
            deadline = None if state.closed else self._trigger.deadline(state.trigger)
            if deadline is not None:
                clock = min(clock, deadline + 1)
        return At(watermark, clock)

    def _end(self, window: Window) -> int:
        return END if self._by_count else window[1]

    def _expiry(self, window: Window) -> int:
        return plus(END if self._by_count else window[1], self._lateness)

    def _scene(self, window: Window, at: At) -> Scene:
        return Scene(at.clock, at.watermark >= self._end(window))

    def _open(self, window: Window, at: At) -> WindowState:
        ended = at.watermark >= self._end(window)
        return WindowState(self._combiner.zero(), self._trigger.fresh(), ended=ended)

    def _take(
        self, window: Window, state: WindowState, elements: Sequence[Element], at: At
    ) -> None:
        for element in elements:
            state.held = self._combiner.add(state.held, element[1])
        self._count(window, state, [element[0] for element in elements], at)

    def _count(self, window: Window, state: WindowState, times: Sequence[int], at: At) -> None:
        scene = self._scene(window, at)
        if not scene.end_passed:
            self._hold(window, state, times, at.watermark)
        state.unseen += len(times)
        self._trigger.see(state.trigger, len(times), scene)

    def _hold(
        self, window: Window, state: WindowState, times: Sequence[int], watermark: int
    ) -> None:
        if self._windowing.stamp == "end":
            state.hold = self._end(window) - 1
            return
        for time in times:
            # An element behind the watermark does not pull the stamp back.
            if time >= watermark or (state.hold is not None and time > state.hold):
                state.hold = self._stamp(state.hold, time)

    def _stamp(self, one: int | None, other: int | None) -> int | None:
        if one is None or other is None:
            return other if one is None else one
        return min(one, other) if self._windowing.stamp == "earliest" else max(one, other)

    def _ask(self, key: KeyState, window: Window, at: At, outcome: Outcome) -> None:
        """Give a pane if the trigger says so; close the window if that finishes the trigger."""
        state = key.windows[window]
        scene = self._scene(window, at)
        if state.closed or not self._trigger.ready(state.trigger, scene):
            return
        self._trigger.fire(state.trigger, scene)
        state.closed = bool(state.trigger[0])
        self._give(window, state, self._timing(window, state, at), outcome, last=state.closed)

    def _expire(self, key: KeyState, window: Window, at: At, outcome: Outcome) -> None:
        state = key.windows.pop(window)
        if not state.closed:
            self._give(window, state, self._timing(window, state, at), outcome, last=True)

    def _timing(self, window: Window, state: WindowState, at: At) -> Timing:
        if at.watermark < self._end(window):
            return "early"
        if state.settled or (state.ended and state.hold is None):
            return "late"
        return "on_time"

    def _give(
        self, window: Window, state: WindowState, timing: Timing, outcome: Outcome, *, last: bool
    ) -> None:
        """Append a pane if there is something to say, and begin the next one."""
        if (
            state.unseen
            or (timing == "on_time" and self._windowing.on_time_pane == "always")
            or (last and self._windowing.final_pane == "always")
        ):
            pane = Pane(
                window=window,
                value=self._combiner.result(state.held),
                timing=timing,
                index=state.panes,
                on_time_index=-1 if timing == "early" else state.settled,
                last=last,
                stamp=self._pane_stamp(window, state),
                withdraws=tuple(state.live),
            )
            outcome.panes.append(pane)
            state.panes += 1
            state.settled += timing != "early"
            if self._windowing.mode == "retracting":
                state.live = [] if last else [(window, pane.value)]
        state.unseen, state.hold = 0, None
        if last or self._windowing.mode == "discarding":
            state.held = self._combiner.zero()

    def _pane_stamp(self, window: Window, state: WindowState) -> int:
        if self._windowing.stamp == "end" or state.hold is None:
            return self._end(window) - 1
        return state.hold

    def _add_counted(
        self,
        kind: CountWindows,
        key: KeyState,
        elements: Iterable[Element],
        at: At,
        outcome: Outcome,
    ) -> None:
        """Fill count windows in order of arrival; a full one gives its only on-time pane."""
        for element in elements:
            window = kind.of_ordinal(key.ordinal)
            key.ordinal += 1
            state = key.windows.get(window)
            if state is None:
                state = key.windows[window] = self._open(window, at)
            if state.closed:
                outcome.late.append(_late(element, window, "closed", at))
            else:
                self._take(window, state, (element,), at)
            if key.ordinal == window[1]:
                del key.windows[window]
                if not state.closed:
                    self._give(window, state, "on_time", outcome, last=True)
        for window in list(key.windows):
            self._ask(key, window, at, outcome)

    def _merge(
        self, key: KeyState, batch: dict[Window, list[Element]], at: At, outcome: Outcome
    ) -> dict[Window, list[Element]]:
        """Merge sessions that the batch joins; return its elements by the sessions they are in.

        A session that was closed merges with nothing, and goes on as late with what falls into it.
        """
        merged: dict[Window, list[Element]] = {}
        sessions = {window for window, state in key.windows.items() if not state.closed}
        for group in joined([*sessions, *batch]):
            elements = [element for window in group for element in batch.get(window, ())]
            if not elements:
                continue
            members = [window for window in group if window in sessions]
            whole = (group[0][0], max(end for _, end in group))
            if not members and self._falls_into_closed(key, whole):
                outcome.late += (_late(element, whole, "closed", at) for element in elements)
                continue
            merged[whole] = elements
            if members and members != [whole]:
                states = [key.windows.pop(window) for window in members]
                key.windows[whole] = self._joined_state(whole, states, at)
        return merged

    def _falls_into_closed(self, key: KeyState, window: Window) -> bool:
        for other, state in list(key.windows.items()):
            if state.closed and other[0] <= window[0] < other[1]:
                del key.windows[other]
                key.windows[other[0], max(window[1], other[1])] = state
                return True
        return False

    def _joined_state(self, window: Window, states: list[WindowState], at: At) -> WindowState:
        """Return the state of a session that others became; its panes are numbered anew."""
        scene = self._scene(window, at)
        joined_state = WindowState(
            held=states[0].held,
            trigger=self._trigger.merge([state.trigger for state in states], scene),
            unseen=sum(state.unseen for state in states),
            ended=scene.end_passed,
            live=[value for state in states for value in state.live],
        )
        for state in states[1:]:
            joined_state.held = self._combiner.merge(joined_state.held, state.held)
        for state in states:
            joined_state.hold = self._stamp(joined_state.hold, state.hold)
        return joined_state


def _late(
    element: Element, window: Window, reason: Literal["expired", "closed"], at: At
) -> LateElement:
    time, value, *origin = element
    return LateElement(time, value, window, reason, at.watermark - time, *origin)


def _late_partial(
    partial: Partial, reason: Literal["expired", "closed"], at: At
) -> Iterator[LateElement]:
    for time, origin in zip(partial.times, partial.origins, strict=True):
        named = (partial.source, origin)
        yield LateElement(time, None, partial.window, reason, at.watermark - time, named)
