"""What Spark's parser made of a text: its plan, looked through node by node.

The plan is unresolved: names are names, and nothing was looked up or computed for it. Every object
that can be reached in it has a class that is on a list in ``words``; otherwise the query is
refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from penstock.pipelines.query.words import LEAVES, NODES, VALUES

__all__ = ["Node", "TextPlace", "children", "nodes", "options", "resolved", "strings"]

_COLLECTIONS = "scala.collection.immutable."
_TYPES = "org.apache.spark.sql.types."
_ANONYMOUS = "$$anon$"
_VIEW = "org.apache.spark.sql.catalyst.plans.logical.View"


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where in the text something stands: line and column from 1, and its first character."""

    line: int
    column: int
    start: int


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a plan, with the part that it is in."""

    java: Any
    kind: str
    """Its class, without a package."""
    allowed: bool
    depth: int
    parent: "Node | None"

    def place(self) -> TextPlace | None:
        """Return where it stands in the text, or what it is in; None where nobody knows."""
        try:
            origin = self.java.origin()
            found = [origin.line(), origin.startPosition(), origin.startIndex()]
        except Py4JError:  # not a node of a tree
            found = []
        if found and all(each.isDefined() for each in found):
            line, column, start = (int(each.get()) for each in found)
            return TextPlace(line, column + 1, start)
        return self.parent.place() if self.parent else None


def nodes(plan: Any) -> Iterator[Node]:
    """Yield the nodes of a plan, outer ones first, also those of queries inside of expressions.

    Something that is on no list is yielded as not allowed, and not looked into.
    """
    pending: list[tuple[Any, Node | None]] = [(plan, None)]
    while pending:
        value, parent = pending.pop()
        if not isinstance(value, JavaObject):
            continue
        name = str(value.getClass().getName()).partition(_ANONYMOUS)[0]
        if name in NODES:
            node = Node(value, _last(name), True, parent.depth + 1 if parent else 0, parent)  # noqa: FBT003
            yield node
            pending += ((each, node) for each in reversed(children(value)))
        elif name.startswith(_COLLECTIONS):
            pending += ((each, parent) for each in reversed(_items(value)))
        elif name in VALUES:
            pending += ((each, parent) for each in reversed(children(value)))
        elif name not in LEAVES and not name.startswith(_TYPES):
            yield Node(value, _last(name), False, 0, parent)  # noqa: FBT003


def resolved(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yield all objects of a plan whose names were looked up, by class; not what is in views."""
    product, pending = plan.getClass().forName("scala.Product"), [plan]
    while pending:
        value = pending.pop()
        if not isinstance(value, JavaObject):
            continue
        name = str(value.getClass().getName())
        yield name, value
        if name.startswith(_COLLECTIONS):
            pending += _items(value)
        elif name != _VIEW and not name.startswith(_TYPES) and product.isInstance(value):
            pending += children(value)


def children(product: Any) -> list[Any]:
    """Return the fields of a Scala value."""
    return [product.productElement(number) for number in range(product.productArity())]


def strings(found: Any) -> tuple[str, ...]:
    """Return the texts of a Scala sequence."""
    return tuple(str(each) for each in _items(found))


def options(found: Any) -> Any:
    """Return what a Scala option holds, or None."""
    return found.get() if found.isDefined() else None


def _items(collection: Any) -> list[Any]:
    found, iterator = [], collection.iterator()
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def _last(name: str) -> str:
    return name.rpartition(".")[2]
