"""``penstock graph``: the application drawn for the terminal, as Mermaid or as SVG."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.load import load_application
from penstock.cli.session import Session
from penstock.core.drawing.text import describe, draw_mermaid, draw_text
from penstock.core.graph.graph import Graph
from penstock.errors import ConfigurationError

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "--format",
        choices=sorted(_FORMATS),
        help="the format; by default that of the output file's extension, or text",
    )
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="the file to write")
    add_json(parser)
    command(parser, _graph)


def _svg(graph: Graph) -> str:
    from penstock.core.drawing.svg import draw_svg

    return draw_svg(graph)


_FORMATS: dict[str, Callable[[Graph], str]] = {
    "text": draw_text,
    "mermaid": draw_mermaid,
    "svg": _svg,
}
_ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid"}


def _graph(session: Session) -> None:
    output: Path | None = session.arguments.output
    by_name = _ENDINGS.get(output.suffix, "text") if output else "text"
    # A graph with problems can be drawn: that is often how they are understood.
    graph = load_application(session.arguments.app).graph
    if session.arguments.json:
        session.terminal.json(_as_json(graph))
        return
    drawing = _FORMATS[session.arguments.format or by_name](graph)
    if output is None:
        session.terminal.lines(drawing)
        return
    try:
        output.write_text(f"{drawing}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{output} cannot be written: {error.strerror}", code="output.file"
        ) from error
    session.terminal.note(f"wrote {output}")


def _as_json(graph: Graph) -> dict[str, Any]:
    nodes = [
        {"name": node.name, "kind": node.kind, "is": describe(node)}
        for node in (*graph.parts, *graph.data)
    ]
    edges = [
        {"from": edge.start, "to": edge.end, "feedback": edge.feedback} for edge in graph.edges()
    ]
    return {"app": graph.app, "nodes": nodes, "edges": edges}
