"""Which values of a document a dotted path leads to, through objects and arrays.

An array in the middle of a path stands for its objects, one after the other, and a number in a
path for one element of an array. At the end of a path an array stands for its elements, and last
for itself, unless the condition is about arrays. Arrays within arrays are not opened.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.live.values import MISSING

__all__ = ["Part", "any_value", "as_object", "index_of", "read_path"]

Test = Callable[[Any], bool]

Part = tuple[str, int]
"""One name in a path, and the index that it is of an array; -1: it is none."""

_LARGEST_INDEX = 1_000_000


def read_path(path: str) -> tuple[Part, ...]:
    """Return the parts of a path."""
    return tuple((name, index_of(name)) for name in path.split("."))


def index_of(name: str) -> int:
    """Return which element of an array a name means; -1: none."""
    if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0"):
        index = int(name[:8])
        return index if len(name) < 8 and index <= _LARGEST_INDEX else -1  # noqa: PLR2004
    return -1


def as_object(array: Sequence[Any]) -> dict[str, Any]:
    """Return an array as an object whose fields are its indexes."""
    return {str(index): value for index, value in enumerate(array)}


def any_value(parts: tuple[Part, ...], test: Test, *, into: bool) -> Callable[[Any], bool]:
    """Return whether any of the values that a path leads to passes a test.

    ``into`` says whether an array at the end of the path is opened.
    """
    if len(parts) > 1:
        return lambda document: _walk(document, parts, test, into)
    name = parts[0][0]

    def of_field(document: Any) -> bool:
        value = document.get(name, MISSING)
        if type(value) is not list:
            return test(value)
        return (into and any(map(test, value))) or test(value)

    return of_field


def _walk(document: Any, parts: tuple[Part, ...], test: Test, into: bool) -> bool:
    """Go through objects up to the end of the path, or to an array."""
    value = document
    last = len(parts) - 1
    for place, (name, _) in enumerate(parts):
        value = value.get(name, MISSING)
        if type(value) is list:
            return _walk_array(value, parts[place + 1 :], test, into)
        if type(value) is not dict:
            return test(value if place == last else MISSING)
    return test(value)


def _walk_array(array: list[Any], rest: tuple[Part, ...], test: Test, into: bool) -> bool:
    """Go into the objects of an array, and into the one element that the path may name."""
    if not rest:
        return (into and any(map(test, array))) or test(array)
    named, tail = rest[0][1], rest[1:]
    for index, value in enumerate(array):
        if type(value) is dict and _walk(value, rest, test, into):
            return True
        if index == named and _element(value, tail, test, into):
            return True
    return False


def _element(value: Any, tail: tuple[Part, ...], test: Test, into: bool) -> bool:
    """Look at the element that a path names: it is not opened where the path ends there."""
    if not tail:
        return test(value)
    if type(value) is list:
        return _walk_array(value, tail, test, into)
    return type(value) is dict and _walk(value, tail, test, into)
