"""Finds parts by name, and names the nearest one where there is none."""

from collections.abc import Sequence
from typing import TypeVar

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part
from penstock.core.hints import did_you_mean
from penstock.errors import ConfigurationError

__all__ = ["find_part", "find_parts"]

P = TypeVar("P", bound=Part)


def find_part(graph: Graph, name: str, kind: type[P]) -> P:
    """Return the part of this name and kind; ConfigurationError ``part.unknown``: there is none."""
    part = graph.part(name)
    if isinstance(part, kind):
        return part
    raise ConfigurationError(
        f"{graph.app!r} has no {kind.__name__.lower()} {name!r}",
        code="part.unknown",
        hint=did_you_mean(name, [each.name for each in graph.parts if isinstance(each, kind)]),
    )


def find_parts(graph: Graph, names: Sequence[str]) -> list[Part]:
    """Return the parts of these names, each once; ConfigurationError names all that are none."""
    unknown = [name for name in names if graph.part(name) is None]
    if unknown:
        raise ConfigurationError(
            f"{graph.app} has no part {', '.join(unknown)}",
            code="part.unknown",
            hint=did_you_mean(unknown[0], [part.name for part in graph.parts]),
        )
    wanted = set(names)
    return [part for part in graph.parts if part.name in wanted]
