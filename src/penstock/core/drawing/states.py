"""The life cycles of an application, to be drawn: states, and what leads between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.lifecycles.declared import Move
from penstock.core.lifecycles.lifecycle import LifeCycle
from penstock.core.units import duration_text

__all__ = ["Chart", "StateArrow", "charts"]


@dataclass(frozen=True, slots=True)
class StateArrow:
    """An arrow between two states: what leads along it, in words."""

    start: str
    end: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One life cycle: the name of what it fills, its states, and its arrows."""

    name: str
    states: tuple[str, ...]
    resting: tuple[str, ...]
    steps: tuple[StateArrow, ...]

    def lines(self) -> Iterator[str]:
        """Yield it as text, state by state."""
        yield f"{self.name}: life cycle, begins {self.states[0] if self.states else 'nowhere'}"
        for state in self.states:
            onward = [step for step in self.steps if step.start == state]
            yield f"  {state}{'  (may last for ever)' if state in self.resting else ''}"
            for step in onward:
                branch = "└─▶ " if step is onward[-1] else "├─▶ "
                yield f"    {branch}{step.end}  ({step.words})"


def charts(graph: Graph) -> Sequence[Chart]:
    """Return each life cycle once, under the names of all that it fills."""
    found: list[tuple[LifeCycle, list[str]]] = []
    for part in graph.parts:
        if isinstance(part, Pipeline | Service) and isinstance(part.operator, LifeCycle):
            life = part.operator
            names = next((names for other, names in found if other == life), None)
            if names is None:  # records with a list among their first values have no hash
                found.append((life, names := []))
            names += [data.name for data in part.outputs]
    return [
        Chart(", ".join(names), life.states, life.resting, tuple(_steps(life)))
        for life, names in found
    ]


def _steps(life: LifeCycle) -> Iterator[StateArrow]:
    for move in life.moves:
        if move.target is not None:
            for state in move.sources:
                yield StateArrow(state, move.target, _words(life, move))


def _words(life: LifeCycle, move: Move) -> str:
    if move.after is not None:
        return f"after {duration_text(move.after)}"
    name = str(getattr(life.reads[move.stream or 0], "name", "?"))
    return f"{name}: {move.where}" if move.where else name
