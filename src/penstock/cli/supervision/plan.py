"""Which processes ``penstock dev`` starts for an application, and what it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import ON_SPARK, Part, Source
from penstock.core.wiring.lookup import find_parts
from penstock.errors import ConfigurationError

__all__ = ["Plan", "Unit", "make_plan"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One process and the parts it runs."""

    name: str
    kind: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All processes of a run; ``left_out`` are sources that need a person at a terminal."""

    units: tuple[Unit, ...]
    left_out: tuple[str, ...] = ()


def make_plan(
    graph: Graph, *, only: Sequence[str] = (), also: Sequence[str] = (), share: bool = True
) -> Plan:
    """Return the plan: all pipelines and jobs in one process, each other part in one of its own.

    ``only`` takes these parts alone, ``also`` those that are left out by default. Pipelines that
    do not ``share`` one Spark have a process each, too. Raises ConfigurationError where a name is
    no part, or nothing is left to run.
    """
    chosen = find_parts(graph, only) if only else list(graph.parts)
    added = find_parts(graph, also)
    left_out = [part for part in chosen if _interactive(part) and part not in added]
    parts = [part for part in graph.parts if part in (*chosen, *added) and part not in left_out]
    if not parts:
        raise ConfigurationError(
            f"{graph.app} has nothing to run",
            code="dev.nothing",
            hint="declare a source, a service, a pipeline or a sink"
            if not left_out
            else f"penstock run APP --part {left_out[0].name}",
        )
    units = _units(graph, parts) if share else [_alone(part) for part in parts]
    return Plan(tuple(units), tuple(part.name for part in left_out))


def _interactive(part: Part) -> bool:
    return isinstance(part, Source) and part.connector.interactive


def _units(graph: Graph, parts: Sequence[Part]) -> list[Unit]:
    pipelines = tuple(part.name for part in parts if part.kind in ON_SPARK)
    units = [_alone(part) for part in parts if part.kind not in ON_SPARK]
    if pipelines:
        # One Spark serves them all; its process has the name of a part only where it is that part.
        shared = "pipelines" if graph.part("pipelines") is None else f"{graph.app}.pipelines"
        units.append(Unit(pipelines[0] if len(pipelines) == 1 else shared, "pipeline", pipelines))
    return units


def _alone(part: Part) -> Unit:
    return Unit(part.name, part.kind, (part.name,))
