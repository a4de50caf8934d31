"""When a window gives a pane. A trigger is a value; its state is a small list beside the window's.

The rules are those of Beam's trigger state machines. ``state[0]`` says whether the trigger has
finished, ``state[1]`` is what it counts, the rest are the states of the triggers inside it. When
the outermost trigger has finished, its window is closed. ``fire`` says that the window has given a
pane: a trigger that was ready has had its turn, and what any other has counted is in that pane.

In Beam's words: `AfterCount` is AfterPane.elementCountAtLeast, `AfterDelay` AfterProcessingTime,
`AnyOf` AfterFirst, `AllOf` AfterAll, `InOrder` AfterEach, `Until` OrFinally, `Repeat` Repeatedly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "DEFAULT",
    "AfterCount",
    "AfterDelay",
    "AfterWatermark",
    "AllOf",
    "AnyOf",
    "InOrder",
    "Never",
    "Repeat",
    "Scene",
    "Trigger",
    "TriggerState",
    "Until",
]

TriggerState: TypeAlias = list[Any]


class Scene(NamedTuple):
    """What a trigger looks at: the clock, and whether the watermark has passed the window's end."""

    clock: int
    end_passed: bool


@dataclass(frozen=True, slots=True)
class AfterCount:
    """Fires once at least so many elements have come."""

    count: int

    def fresh(self) -> TriggerState:
        """Return the state before any element."""
        return [False, 0]

    def see(self, state: TriggerState, count: int, _scene: Scene) -> None:
        """Take note of new elements."""
        state[1] += count

    def ready(self, state: TriggerState, _scene: Scene) -> bool:
        """Whether a pane is due now."""
        return bool(state[1] >= self.count)

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        state[:] = [state[0] or self.ready(state, scene), 0]

    def merge(self, states: list[TriggerState], _scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        if any(state[0] for state in states):
            return [True, 0]
        return [False, sum(state[1] for state in states)]

    def deadline(self, _state: TriggerState) -> int | None:
        """Return the clock time past which it may be ready; None: not the clock's matter."""
        return None


@dataclass(frozen=True, slots=True)
class AfterDelay:
    """Fires once the clock is more than a span past the arrival of the first element."""

    delay: int

    def fresh(self) -> TriggerState:
        """Return the state before any element."""
        return [False, None]

    def see(self, state: TriggerState, _count: int, scene: Scene) -> None:
        """Take note of new elements."""
        if state[1] is None:
            state[1] = scene.clock

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        return state[1] is not None and scene.clock > state[1] + self.delay

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        state[:] = [state[0] or self.ready(state, scene), None]

    def merge(self, states: list[TriggerState], _scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        if all(state[0] for state in states):
            return [True, None]
        arrivals = [state[1] for state in states if state[1] is not None]
        return [False, min(arrivals, default=None)]

    def deadline(self, state: TriggerState) -> int | None:
        """Return the clock time past which it is ready."""
        return None if state[1] is None else state[1] + self.delay


@dataclass(frozen=True, slots=True)
class AfterWatermark:
    """Fires at the end of the window; ``early`` and ``late`` are repeated before and after it."""

    early: Trigger | None = None
    late: Trigger | None = None

    def fresh(self) -> TriggerState:
        """Return the state before any element; its count says whether the end was fired."""
        return [False, False, *(inner.fresh() for inner in (self._early, self._late))]

    @property
    def _early(self) -> Trigger:
        return self.early or NEVER

    @property
    def _late(self) -> Trigger:
        return self.late or NEVER

    def see(self, state: TriggerState, count: int, scene: Scene) -> None:
        """Take note of new elements."""
        self._early.see(state[2], count, scene)
        self._late.see(state[3], count, scene)

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        if state[1]:
            return self._late.ready(state[3], scene)
        return scene.end_passed or self._early.ready(state[2], scene)

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        if state[1]:
            state[3] = _fired_again(self._late, state[3], scene)
        elif scene.end_passed:
            state[:] = [self.late is None, True, self._early.fresh(), self._late.fresh()]
        else:
            state[2] = _fired_again(self._early, state[2], scene)

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became.

        A window with something that was not on time yet, or one that has grown past the watermark,
        waits for its end again.
        """
        if scene.end_passed and all(state[1] for state in states):
            late = _merged_again(self._late, [state[3] for state in states], scene)
            return [self.late is None, True, self._early.fresh(), late]
        early = _merged_again(self._early, [state[2] for state in states], scene)
        return [False, False, early, self._late.fresh()]

    def deadline(self, state: TriggerState) -> int | None:
        """Return the clock time past which it may be ready."""
        return self._late.deadline(state[3]) if state[1] else self._early.deadline(state[2])


@dataclass(frozen=True, slots=True)
class Repeat:
    """Fires whenever the inner trigger does, for ever."""

    inner: Trigger

    def fresh(self) -> TriggerState:
        """Return the state before any element."""
        return [False, None, self.inner.fresh()]

    def see(self, state: TriggerState, count: int, scene: Scene) -> None:
        """Take note of new elements."""
        self.inner.see(state[2], count, scene)

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        return self.inner.ready(state[2], scene)

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        state[2] = _fired_again(self.inner, state[2], scene)

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        return [False, None, _merged_again(self.inner, [state[2] for state in states], scene)]

    def deadline(self, state: TriggerState) -> int | None:
        """Return the clock time past which it may be ready."""
        return self.inner.deadline(state[2])


@dataclass(frozen=True, slots=True)
class _Several:
    """Triggers side by side, all of which see every element."""

    inner: tuple[Trigger, ...]

    def fresh(self) -> TriggerState:
        """Return the state before any element."""
        return [False, None, *(trigger.fresh() for trigger in self.inner)]

    def see(self, state: TriggerState, count: int, scene: Scene) -> None:
        """Take note of new elements."""
        for trigger, inner in zip(self.inner, state[2:], strict=True):
            trigger.see(inner, count, scene)

    def _merged(self, states: list[TriggerState], scene: Scene) -> list[TriggerState]:
        return [
            trigger.merge([state[index] for state in states], scene)
            for index, trigger in enumerate(self.inner, start=2)
        ]

    def deadline(self, state: TriggerState) -> int | None:
        """Return the clock time past which it may be ready."""
        times = [
            time
            for trigger, inner in zip(self.inner, state[2:], strict=True)
            if not inner[0] and (time := trigger.deadline(inner)) is not None
        ]
        return min(times, default=None)


class AnyOf(_Several):
    """Fires when the first of its triggers does, and finishes with it."""

    __slots__ = ()

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        return any(
            trigger.ready(inner, scene)
            for trigger, inner in zip(self.inner, state[2:], strict=True)
        )

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        for trigger, inner in zip(self.inner, state[2:], strict=True):
            trigger.fire(inner, scene)
        state[0] = any(inner[0] for inner in state[2:])

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        inner = self._merged(states, scene)
        return [any(state[0] for state in inner), None, *inner]


class AllOf(_Several):
    """Fires when all of its triggers would, and finishes when all have."""

    __slots__ = ()

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        return all(
            inner[0] or trigger.ready(inner, scene)
            for trigger, inner in zip(self.inner, state[2:], strict=True)
        )

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given; one that was not its own finishes none of it."""
        if not self.ready(state, scene):
            state[:] = self.fresh()
            return
        for trigger, inner in zip(self.inner, state[2:], strict=True):
            trigger.fire(inner, scene)
        state[0] = all(inner[0] for inner in state[2:])

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        inner = self._merged(states, scene)
        return [all(state[0] for state in inner), None, *inner]


class InOrder(_Several):
    """Fires as its first unfinished trigger does, and finishes with the last."""

    __slots__ = ()

    def _current(self, state: TriggerState) -> int:
        unfinished = (index for index, inner in enumerate(state[2:]) if not inner[0])
        return next(unfinished, len(self.inner))

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        if state[0]:
            return False
        current = self._current(state)
        return self.inner[current].ready(state[current + 2], scene)

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given; those that follow begin anew."""
        current = self._current(state)
        for index, trigger in enumerate(self.inner):
            if index <= current:
                trigger.fire(state[index + 2], scene)
            else:
                state[index + 2] = trigger.fresh()
        state[0] = all(inner[0] for inner in state[2:])

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became; those that follow begin anew."""
        inner: list[TriggerState] = []
        for trigger, merged in zip(self.inner, self._merged(states, scene), strict=True):
            inner.append(merged if all(state[0] for state in inner) else trigger.fresh())
        return [all(state[0] for state in inner), None, *inner]

    def deadline(self, state: TriggerState) -> int | None:
        """Return the clock time past which it may be ready."""
        if state[0]:
            return None
        current = self._current(state)
        return self.inner[current].deadline(state[current + 2])


class Until(_Several):
    """Fires as its first trigger does until the second fires, which also ends it."""

    __slots__ = ()

    def ready(self, state: TriggerState, scene: Scene) -> bool:
        """Whether a pane is due now."""
        actual, end = self.inner
        return actual.ready(state[2], scene) or end.ready(state[3], scene)

    def fire(self, state: TriggerState, scene: Scene) -> None:
        """Move on, a pane having been given."""
        actual, end = self.inner
        if end.ready(state[3], scene):
            state[2] = actual.fresh()
            end.fire(state[3], scene)
            state[3][0] = True
        else:
            # The end counts on: it looks at the whole window, not at one pane.
            actual.fire(state[2], scene)
        state[0] = state[2][0] or state[3][0]

    def merge(self, states: list[TriggerState], scene: Scene) -> TriggerState:
        """Return the state of the window that several became."""
        inner = self._merged(states, scene)
        return [any(state[0] for state in inner), None, *inner]


@dataclass(frozen=True, slots=True)
class Never:
    """Never fires; what a window holds comes in its final pane."""

    def fresh(self) -> TriggerState:
        """Return the state before any element."""
        return [False, None]

    def see(self, _state: TriggerState, _count: int, _scene: Scene) -> None:
        """Take note of nothing."""

    def ready(self, _state: TriggerState, _scene: Scene) -> bool:
        """Whether a pane is due now: never."""
        return False

    def fire(self, _state: TriggerState, _scene: Scene) -> None:
        """Do nothing; the pane was another's."""

    def merge(self, _states: list[TriggerState], _scene: Scene) -> TriggerState:
        """Return the only state there is."""
        return self.fresh()

    def deadline(self, _state: TriggerState) -> int | None:
        """Return None: not the clock's matter."""
        return None


Trigger: TypeAlias = (
    AfterCount | AfterDelay | AfterWatermark | Repeat | AnyOf | AllOf | InOrder | Until | Never
)


def _fired_again(trigger: Trigger, state: TriggerState, scene: Scene) -> TriggerState:
    """Return the state of a trigger that is repeated, a pane having been given."""
    trigger.fire(state, scene)
    return trigger.fresh() if state[0] else state


def _merged_again(trigger: Trigger, states: list[TriggerState], scene: Scene) -> TriggerState:
    """Return the state of a trigger that is repeated, of the window that several became."""
    merged = trigger.merge(states, scene)
    return trigger.fresh() if merged[0] else merged


NEVER = Never()
DEFAULT = Repeat(AfterWatermark())
"""On time, then again for every late element."""
