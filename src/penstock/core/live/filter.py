"""A filter that was read: conditions on fields, joined by and, or and not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.live.paths import any_value, read_path

__all__ = ["Condition", "Joined", "Node", "compiled"]

Matches = Callable[[Any], bool]
"""Whether a document matches."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on what a path leads to; any of the values may fulfil it."""

    path: str
    operator: str
    operand: Any
    test: Callable[[Any], bool] = field(compare=False, repr=False)
    into: bool = True
    """Whether an array at the end of the path is opened."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Several nodes as one: all of them, any, or none."""

    how: Literal["all", "any", "none"]
    nodes: tuple[Node, ...]


Node = Condition | Joined


def compiled(node: Node) -> Matches:
    """Return the function that tells whether a document, or an element of one, matches."""
    if isinstance(node, Condition):
        if not node.path:
            return node.test
        return any_value(read_path(node.path), node.test, into=node.into)
    found = [compiled(each) for each in node.nodes]
    if node.how == "all":
        return _all_of(found)
    if node.how == "any":
        return lambda document: any(matches(document) for matches in found)
    return lambda document: not any(matches(document) for matches in found)


def _all_of(found: list[Matches]) -> Matches:
    if not found:
        return lambda _document: True
    if len(found) == 1:
        return found[0]
    if len(found) == 2:  # noqa: PLR2004 - two are the usual case, and a loop costs as much again
        first, second = found
        return lambda document: first(document) and second(document)
    return lambda document: all(matches(document) for matches in found)
