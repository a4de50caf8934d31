"""Windowed aggregations as parts of an application: what each computes, and where it writes."""

from dataclasses import replace

from penstock.core.graph.data import Data, Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.panes.windows import SessionWindows
from penstock.core.rollup.resolve import Rollup, read_rollup
from penstock.core.rollup.wire import Destination
from penstock.errors import DefinitionError

__all__ = ["pane_destination", "rollup_of"]


def rollup_of(part: Pipeline | Service) -> Rollup:
    """Return the aggregation of a part, ready to run; DefinitionError where it has none.

    A table loses the rows of sessions that became one only if these are withdrawn, so into a table
    sessions always run retracting.
    """
    found = read_rollup(part.aggregation) if part.aggregation else []
    if not isinstance(found, Rollup):
        raise DefinitionError(tuple(found))
    if _written(part).kind == "table" and isinstance(found.windowing.windows, SessionWindows):
        return replace(found, windowing=replace(found.windowing, mode="retracting"))
    return found


def pane_destination(graph: Graph, part: Pipeline | Service) -> Destination:
    """Return where a part of an application writes its panes."""
    data = _written(part)
    if isinstance(data, Lake):
        raise TypeError(f"{part.name}: panes go to streams and tables")
    return Destination(
        part=part.name,
        name=data.name,
        topic=data.topic.name,
        shape=data.kind,
        max_record_bytes=data.topic.max_record_bytes,
        late_topic=graph.late_records.name,
        dead_letter_topic=graph.dead_letters.name,
    )


def _written(part: Pipeline | Service) -> Data:
    return part.outputs[0]
