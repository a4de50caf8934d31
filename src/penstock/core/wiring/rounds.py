"""How often records may go round in a cycle of the graph, and who counts."""

from collections.abc import Mapping

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part, Service
from penstock.core.records.deadletter import HEADER_PREFIX

__all__ = ["ROUNDS_HEADER", "feedback_bounds", "is_in_cycle"]

ROUNDS_HEADER = HEADER_PREFIX + "rounds"
"""How often a record, or those that it was made from, went round."""


def feedback_bounds(graph: Graph) -> Mapping[str, int]:
    """Return, by topic, how often a record may come to it by a feedback edge."""
    found: dict[str, int] = {}
    for part in graph.parts:
        if isinstance(part, Service):
            for topic, most in part.rounds:
                found[topic] = min(most, found.get(topic, most))
    return found


def is_in_cycle(graph: Graph, part: Part) -> bool:
    """Return whether what a part writes may come back to it."""
    readers: dict[str, list[Part]] = {}
    for each in graph.parts:
        for data in each.inputs:
            readers.setdefault(data.name, []).append(each)
    seen: set[str] = set()
    reached = [part]
    while reached:
        for data in reached.pop().outputs:
            for reader in readers.get(data.name, ()):
                if reader.name == part.name:
                    return True
                if reader.name not in seen:
                    seen.add(reader.name)
                    reached.append(reader)
    return False
