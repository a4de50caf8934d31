"""The application graph as an SVG picture that stands alone, light and dark."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from penstock.core.drawing.layout import Box, Route, Size, lay_out
from penstock.core.drawing.states import Chart, StateArrow, charts
from penstock.core.drawing.text import counted, describe
from penstock.core.graph.data import Data
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part
from penstock.core.printable import printable

__all__ = ["draw_svg"]

_MARGIN = 28.0
_TITLE = 44.0
_HEIGHT = 54.0
_PADDING = 18.0
_LEAST_WIDTH = 120.0
# Widths of letters as parts of the font size: a drawing has no font to measure.
_BOLD = 0.62 * 15
_PLAIN = 0.545 * 12
_CAP = 9.0
_LONGEST_WORDS = 30
_HEAD = ' marker-end="url(#head)"'
_DRUMS = frozenset({"table", "lake"})

_STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         fill: #0f172a; text-anchor: middle; }
  .title { font-size: 17px; font-weight: 600; text-anchor: start; }
  .name { font-size: 15px; font-weight: 600; }
  .what, .count { font-size: 12px; font-weight: 400; fill: #475569; }
  .paper { fill: #ffffff; }
  .node { fill: #eef2f6; stroke: #64748b; stroke-width: 1.2; }
  .edge { fill: none; stroke: #64748b; stroke-width: 1.6; }
  .feedback { stroke-dasharray: 5 4; }
  .head { fill: #64748b; }
  .stream { fill: #e0f2fe; } .table { fill: #dcfce7; }
  .lake { fill: #ccfbf1; } .pipeline { fill: #fef3c7; } .service { fill: #ede9fe; }
  .job { fill: #ffedd5; } .actor { fill: #fae8ff; }
  .rim { fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f1f5f9; } .what, .count { fill: #b6c2d3; } .paper { fill: #0f172a; }
    .node { fill: #2b3648; } .node, .edge { stroke: #8b9bb0; } .head { fill: #8b9bb0; }
    .stream { fill: #0c4a6e; } .table { fill: #14532d; }
    .lake { fill: #134e4a; } .pipeline { fill: #713f12; } .service { fill: #4c1d95; }
    .job { fill: #7c2d12; } .actor { fill: #701a75; } }
"""


def draw_svg(graph: Graph) -> str:
    """Return the picture: parts as boxes, streams as pipes, tables and the lake as drums."""
    nodes: dict[str, Data | Part] = {node.name: node for node in (*graph.parts, *graph.data)}
    layout = lay_out(
        {name: _size(node) for name, node in nodes.items()},
        [(edge.start, edge.end) for edge in graph.edges()],
    )
    feedback = {(edge.start, edge.end) for edge in graph.edges() if edge.feedback}
    title = f'{_escaped(graph.app)}<tspan class="count" dx="10">{escape(counted(graph))}</tspan>'
    caption = len(graph.app) * 10 + len(counted(graph)) * _PLAIN + 20
    drawn = list(_charts(graph, top=_MARGIN + _TITLE + layout.height + _MARGIN))
    width = max([layout.width, caption, *(each.width for each in drawn)]) + 2 * _MARGIN
    height = max([layout.height + _TITLE + 2 * _MARGIN, *(each.bottom for each in drawn)])
    size = f'width="{width:.0f}" height="{height:.0f}" role="img"'
    head = (
        '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path class="head" d="M0 1 L10 5 L0 9 z"/></marker>'
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size}>',
        f"<style>{_STYLE}</style>",
        f"<defs>{head}</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" class="paper"/>',
        f'<text class="title" x="{_MARGIN:.0f}" y="{_MARGIN + 16:.0f}">{title}</text>',
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN + _TITLE:.0f})">',
        *(_edge(route, dashed=(route.start, route.end) in feedback) for route in layout.routes),
        *(_node(nodes[name], box) for name, box in layout.boxes.items()),
        "</g>",
        *(line for each in drawn for line in each.lines),
        "</svg>",
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A life cycle that has its place below the graph."""

    lines: tuple[str, ...]
    width: float
    bottom: float


def _charts(graph: Graph, *, top: float) -> Iterator[_Drawn]:
    """Yield the life cycles, one below the other; what leads along an arrow is said on it."""
    for chart in charts(graph):
        # What leads along an arrow is a node of its own, so that it has room.
        said = {f"{step.start}>{n}": step for n, step in enumerate(chart.steps)}
        sizes = {state: _state_size(state) for state in chart.states}
        sizes |= {name: Size(len(_short(step.words)) * _PLAIN, 20) for name, step in said.items()}
        pairs = [pair for n, step in said.items() for pair in ((step.start, n), (n, step.end))]
        layout = lay_out(sizes, pairs)
        arrows = [
            _edge(route, dashed=False).replace(_HEAD, "" if route.end in said else _HEAD)
            for route in layout.routes
        ]
        states = [
            _words(said[name], box) if name in said else _state(name, box, chart)
            for name, box in layout.boxes.items()
        ]
        title = f"{_escaped(chart.name)}: life cycle"
        head = f'<text class="title" x="{_MARGIN:.0f}" y="{top + 16:.0f}">{title}</text>'
        place = f'<g transform="translate({_MARGIN:.0f} {top + _TITLE:.0f})">'
        bottom = top + _TITLE + layout.height + _MARGIN
        yield _Drawn((head, place, *arrows, *states, "</g>"), layout.width, bottom)
        top = bottom


def _state_size(state: str) -> Size:
    return Size(max(len(state) * _BOLD + 2 * _PADDING, _LEAST_WIDTH), _HEIGHT)


def _state(state: str, box: Box, chart: Chart) -> str:
    middle, begins = box.x + box.width / 2, state == chart.states[0]
    what = ["begins"] if begins else []
    what += ["may last for ever"] if state in chart.resting else []
    return (
        f'<rect class="node service" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="{box.height / 2:.0f}"/>'
        f'<text class="name" x="{middle:.1f}" y="{box.y + 24:.1f}">{_escaped(state)}</text>'
        f'<text class="what" x="{middle:.1f}" y="{box.y + 42:.1f}">{", ".join(what)}</text>'
    )


def _words(step: StateArrow, box: Box) -> str:
    """Return what leads along an arrow, shortened; the whole of it is its title."""
    at = f'x="{box.x + box.width / 2:.1f}" y="{box.y + 14:.1f}"'
    whole, short = _escaped(step.words), _escaped(_short(step.words))
    return f'<g><title>{whole}</title><text class="what" {at}>{short}</text></g>'


def _short(words: str) -> str:
    return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"


def _escaped(text: str) -> str:
    """Return a text for XML, which has no way to write a control character."""
    return escape(printable(text))


def _size(node: Data | Part) -> Size:
    text = max(len(node.name) * _BOLD, len(describe(node)) * _PLAIN)
    return Size(max(text + 2 * _PADDING, _LEAST_WIDTH), _HEIGHT)


def _edge(route: Route, *, dashed: bool) -> str:
    (x, y), *_ = route.points
    path = [f"M{x:.1f} {y:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(route.points):
        if y1 == y2:
            path.append(f"L{x2:.1f} {y2:.1f}")
        else:
            bend = (x2 - x1) / 2
            path.append(f"C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}")
    style = "edge feedback" if dashed else "edge"
    return f'<path class="{style}"{_HEAD} d="{" ".join(path)}"/>'


def _node(node: Data | Part, box: Box) -> str:
    middle = box.x + box.width / 2
    top = box.y + (_CAP / 3 if node.kind in _DRUMS else 0)
    name, what = _escaped(node.name), _escaped(describe(node))
    return (
        f"<g><title>{name}: {what}</title>{_shape(node.kind, box)}"
        f'<text class="name" x="{middle:.1f}" y="{top + 24:.1f}">{name}</text>'
        f'<text class="what" x="{middle:.1f}" y="{top + 42:.1f}">{what}</text>'
        "</g>"
    )


def _shape(kind: str, box: Box) -> str:
    if kind in _DRUMS:
        # A drum that stands: the near edge of its upper rim is a second line.
        rim = f"a{box.width / 2:.1f} {_CAP / 2} 0 0 "
        top, low = box.y + _CAP / 2, box.y + box.height - _CAP / 2
        start = f"M{box.x:.1f} {top:.1f}"
        body = f"{start} {rim}1 {box.width:.1f} 0 V{low:.1f} {rim}1 {-box.width:.1f} 0 Z"
        edge = f"{start} {rim}0 {box.width:.1f} 0"
    elif kind == "stream":
        # A pipe that lies: the near edge of its right end is a second line.
        rim = f"a{_CAP / 2} {box.height / 2:.1f} 0 0 "
        left, right = box.x + _CAP / 2, box.x + box.width - _CAP / 2
        start = f"M{left:.1f} {box.y + box.height:.1f}"
        body = f"{start} {rim}1 0 {-box.height:.1f} H{right:.1f} {rim}1 0 {box.height:.1f} Z"
        edge = f"M{right:.1f} {box.y:.1f} {rim}0 0 {box.height:.1f}"
    else:
        corner = {"service": 14, "actor": 22, "source": 2, "sink": 2}.get(kind, 6)
        return (
            f'<rect class="node {kind}" x="{box.x:.1f}" y="{box.y:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner}"/>'
        )
    return f'<path class="node {kind}" d="{body}"/><path class="node rim" d="{edge}"/>'
