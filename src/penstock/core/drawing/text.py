"""The application graph as a tree of text, and as a Mermaid flowchart."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from penstock.core.drawing.states import Chart, charts
from penstock.core.graph.data import Archive, Data, Lake, Table
from penstock.core.graph.graph import Edge, Graph
from penstock.core.graph.parts import Part
from penstock.core.printable import printable
from penstock.core.units import duration_text

__all__ = ["counted", "describe", "draw_mermaid", "draw_text"]

_ORDER = (
    "source",
    "stream",
    "table",
    "lake",
    "pipeline",
    "job",
    "service",
    "actor",
    "gateway",
    "sink",
)
_MERMAID_SHAPES = {
    "source": ('>"', '"]'),
    "stream": ('[["', '"]]'),
    "table": ('[("', '")]'),
    "lake": ('[("', '")]'),
    "pipeline": ('{{"', '"}}'),
    "job": ('{{"', '"}}'),
    "service": ('("', '")'),
    "actor": ('(["', '"])'),
    "sink": ('[/"', '"/]'),
}
_MERMAID_BOX = ('["', '"]')
"""The shape of any other kind."""
_MERMAID_COLOURS = {
    "source": "fill:#eef2f6,stroke:#64748b,color:#0f172a",
    "stream": "fill:#e0f2fe,stroke:#0284c7,color:#0f172a",
    "table": "fill:#dcfce7,stroke:#16a34a,color:#0f172a",
    "lake": "fill:#ccfbf1,stroke:#0d9488,color:#0f172a",
    "pipeline": "fill:#fef3c7,stroke:#d97706,color:#0f172a",
    "job": "fill:#ffedd5,stroke:#ea580c,color:#0f172a",
    "service": "fill:#ede9fe,stroke:#7c3aed,color:#0f172a",
    "actor": "fill:#fae8ff,stroke:#c026d3,color:#0f172a",
    "gateway": "fill:#ffe4e6,stroke:#e11d48,color:#0f172a",
    "sink": "fill:#eef2f6,stroke:#64748b,color:#0f172a",
}


def counted(graph: Graph) -> str:
    """Return how many nodes of each kind there are: ``2 sources, 3 streams, 1 service``."""
    kinds: list[str] = [node.kind for node in (*graph.parts, *graph.data)]
    order = dict.fromkeys((*_ORDER, *kinds))
    numbers = [(_singular(kind), kinds.count(kind)) for kind in order]
    words = [f"{n} {word}s" if n > 1 else f"{n} {word}" for word, n in numbers if n]
    return ", ".join(words) or "nothing"


def _singular(kind: str) -> str:
    return "lake table" if kind == "lake" else kind


def describe(node: Data | Part) -> str:
    """Return what a node is, in a few words: ``stream of Word by word``."""
    return node.summary if isinstance(node, Part) else _describe_data(node)


def _describe_data(node: Data) -> str:
    words = f"{_singular(node.kind)} of {node.record.name}"
    if isinstance(node, Archive):
        return f"archive of {node.stream.name} by day"
    if isinstance(node, Lake):
        return (
            f"{words} by {', '.join(map(str, node.partition_by))}" if node.partition_by else words
        )
    if node.record.schema.key:
        words += f" by {', '.join(node.record.schema.key)}"
    if isinstance(node, Table) and node.history is not None:
        words += f", versions of {duration_text(node.history)}"
    return words


def draw_text(graph: Graph) -> str:
    """Return the flow of records as trees, one from each node where records come in.

    What is reached a second time is named again with an arrow up, not drawn again.
    """
    nodes = {node.name: node for node in (*graph.parts, *graph.data)}
    below: dict[str, list[Edge]] = defaultdict(list)
    for edge in graph.edges():
        below[edge.start].append(edge)
    fed = {edge.end for edge in graph.edges()}
    starts = [name for name in nodes if name not in fed and below[name]]
    lines = [f"{printable(graph.app)}: {counted(graph)}"]
    drawn: set[str] = set()
    # What is only in cycles has no start: it is drawn from the first node of it.
    for name in (*starts, *(name for name in nodes if below[name])):
        if name not in drawn:
            lines += ["", *_tree(name, nodes, below, drawn)]
    for chart in charts(graph):
        lines += ["", *(printable(line) for line in chart.lines())]
    if alone := [name for name in nodes if name not in drawn and name not in fed]:
        lines += ["", "not used by any part:"]
        lines += [f"  {_label(nodes[name])}" for name in alone]
    return "\n".join(lines)


def _tree(
    name: str,
    nodes: dict[str, Data | Part],
    below: dict[str, list[Edge]],
    drawn: set[str],
) -> Iterator[str]:
    drawn.add(name)
    yield _label(nodes[name]) if name in nodes else printable(name)
    edges = below[name]
    for edge in edges:
        branch, stem = ("└─▶ ", "    ") if edge is edges[-1] else ("├─▶ ", "│   ")
        if edge.feedback:
            yield f"{branch}{printable(edge.end)} ↺ feedback"
        elif edge.end in drawn:
            more = ", drawn above" if below[edge.end] else ""
            yield f"{branch}{printable(edge.end)} ↑{more}"
        else:
            first, *rest = _tree(edge.end, nodes, below, drawn)
            yield f"{branch}{first}"
            yield from (f"{stem}{line}" for line in rest)


def _label(node: Data | Part) -> str:
    return printable(f"{node.name}  ({describe(node)})")


def draw_mermaid(graph: Graph) -> str:
    """Return a Mermaid flowchart; feedback is dotted, colours tell the kinds apart."""
    nodes: Sequence[Data | Part] = (*graph.parts, *graph.data)
    ids = {node.name: f"n{number}" for number, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        left, right = _MERMAID_SHAPES.get(node.kind, _MERMAID_BOX)
        label = f"<b>{_mermaid_text(node.name)}</b><br/>{_mermaid_text(describe(node))}"
        lines.append(f"  {ids[node.name]}{left}{label}{right}:::{node.kind}")
    for edge in graph.edges():
        arrow = "-. feedback .->" if edge.feedback else "-->"
        if edge.start in ids and edge.end in ids:
            lines.append(f"  {ids[edge.start]} {arrow} {ids[edge.end]}")
    for number, chart in enumerate(charts(graph)):
        lines += _mermaid_chart(number, chart)
    used = {node.kind for node in nodes}
    lines += [
        f"  classDef {kind} {style}" for kind, style in _MERMAID_COLOURS.items() if kind in used
    ]
    return "\n".join(lines)


def _mermaid_chart(number: int, chart: Chart) -> Iterator[str]:
    """Yield a life cycle as a part of the flowchart; the state where it begins is a circle."""
    ids = {state: f"s{number}_{at}" for at, state in enumerate(chart.states)}
    yield f'  subgraph s{number}["{_mermaid_text(chart.name)}: life cycle"]'
    yield "    direction LR"
    for state, name in ids.items():
        left, right = ("((", "))") if state == chart.states[0] else ("(", ")")
        yield f'    {name}{left}"{_mermaid_text(state)}"{right}'
    for step in chart.steps:
        if step.start in ids and step.end in ids:
            words = _mermaid_text(step.words)
            yield f'    {ids[step.start]} -- "{words}" --> {ids[step.end]}'
    yield "  end"


def _mermaid_text(text: str) -> str:
    # A backtick begins Markdown, an ampersand an entity.
    signs = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
    return "".join(signs.get(letter, letter) for letter in printable(text))
