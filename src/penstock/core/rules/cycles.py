"""Cycles in the flow of records that nobody declared."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from penstock.core.graph.graph import Graph

__all__ = ["undeclared_cycles"]


def undeclared_cycles(graph: Graph) -> Iterator[tuple[str, ...]]:
    """Yield a path for each cycle without a declared feedback edge; it ends with a part."""
    parts = {part.name for part in graph.parts}
    edges = {(edge.start, edge.end) for edge in graph.edges() if not edge.feedback}
    while True:
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for start, end in sorted(edges):
            sorter.add(end, start)
        try:
            sorter.prepare()
        except CycleError as error:
            path = _ending_with_a_part(error.args[1][:-1], parts)
            yield path
            # Cut what closes this cycle, then look for the next.
            edges.discard((path[-1], path[0]))
        else:
            return


def _ending_with_a_part(path: list[str], parts: set[str]) -> tuple[str, ...]:
    last = next(index for index, node in enumerate(path) if node in parts)
    return (*path[last + 1 :], *path[: last + 1])
