"""The application graph as JSON: where each node stands, and the way of each edge."""

from typing import Any

from penstock.core.drawing.layout import Size, lay_out
from penstock.core.drawing.text import describe
from penstock.core.graph.data import Data, Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part
from penstock.core.printable import printable

__all__ = ["picture"]

_HEIGHT = 74.0
_NAME, _WHAT = 8.6, 6.6
"""How wide a letter is, about."""
_PADDING = 34.0
_LEAST_WIDTH, _MOST_WIDTH = 200.0, 330.0


def picture(graph: Graph) -> dict[str, Any]:
    """Return the nodes and edges of an application with their places, from left to right."""
    nodes: dict[str, Data | Part] = {node.name: node for node in (*graph.parts, *graph.data)}
    edges = list(graph.edges())
    layout = lay_out(
        {name: _size(node) for name, node in nodes.items()},
        [(edge.start, edge.end) for edge in edges],
    )
    feedback = {(edge.start, edge.end) for edge in edges if edge.feedback}
    return {
        "app": graph.app,
        "width": layout.width,
        "height": layout.height,
        "nodes": [
            {
                "name": name,
                "kind": nodes[name].kind,
                "what": describe(nodes[name]),
                "place": str(nodes[name].place or ""),
                "is_part": isinstance(nodes[name], Part),
                "on_log": not isinstance(nodes[name], Part | Lake),
                "x": box.x,
                "y": box.y,
                "width": box.width,
                "height": box.height,
            }
            for name, box in layout.boxes.items()
        ],
        "edges": [
            {
                "start": route.start,
                "end": route.end,
                "feedback": (route.start, route.end) in feedback,
                "points": route.points,
            }
            for route in layout.routes
        ],
    }


def _size(node: Data | Part) -> Size:
    text = max(len(printable(node.name)) * _NAME, len(describe(node)) * _WHAT)
    return Size(min(max(text + _PADDING, _LEAST_WIDTH), _MOST_WIDTH), _HEIGHT)
