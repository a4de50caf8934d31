"""How far the ways in and out have come: positions of sources, and of the groups of sinks."""

from collections.abc import Iterator
from typing import Any

from penstock.cli.console.reach import Reach
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part
from penstock.errors import ConfigurationError
from penstock.serving.desk.offers import Asked

__all__ = ["Positions"]

_SPLITS = 50
"""So many positions of a connector are told."""
_READ = 5000
"""So many commits are read of a source, the newest: a split without one among them is left out."""
_MOST_TEXT = 300


class Positions:
    """Reads what connectors have committed."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def document(self, asked: Asked) -> dict[str, Any]:
        """Return the positions of all sources and sinks by their names."""
        del asked
        graph = self._reach.application
        return {
            "connectors": {
                part.name: _told(list(self._of(graph, part)))
                for part in graph.parts
                if part.kind in ("source", "sink")
            }
        }

    def _of(self, graph: Graph, part: Part) -> Iterator[dict[str, Any]]:
        if part.kind == "sink":
            lags = self._reach.log.look().lags(f"{graph.app}.{part.name}")
            for (topic, number), (offset, end) in lags.items():
                yield {
                    "where": f"{topic}[{number}]",
                    "at": str(offset),
                    "left": max(0, end - offset),
                }
            return
        if (kept := part.own_topics(graph.app).get("positions")) is not None:
            for split, position in sorted(self._read(kept.name).items()):
                yield {"where": split[:_MOST_TEXT], "at": str(position)[:_MOST_TEXT], "left": None}

    def _read(self, topic: str) -> dict[str, Any]:
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import Last
        from penstock.connectors.source.positions import load_positions

        try:
            reader = LogReader(self._reach.log.connection)
            found = reader.read(topic, start=Last(_READ), when_trimmed="skip")
            return load_positions((record.key, record.value) for record in found)
        except ConfigurationError:
            return {}  # it has never run


def _told(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {"positions": found[:_SPLITS], "count": len(found)}
