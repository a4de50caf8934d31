"""Which fields of a document a result has."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["read_fields"]


def read_fields(paths: Sequence[str]) -> Callable[[Any], Any]:
    """Return what cuts a document down to some fields, in the document's own order."""
    if not paths:
        return lambda document: document
    tree: dict[str, Any] = {}
    for path in paths:
        at = tree
        *names, last = path.split(".")
        for name in names:
            at = at.setdefault(name, {})
            if at is None:  # a whole field was asked for already
                break
        else:
            at[last] = None
    return lambda document: _cut(document, tree)


def _cut(value: Any, tree: Any) -> Any:
    if tree is None:
        return value
    if type(value) is list:
        return [_cut(each, tree) for each in value if type(each) in (dict, list)]
    if type(value) is not dict:
        return value
    found = {}
    for name, each in value.items():
        if name in tree and (tree[name] is None or type(each) in (dict, list)):
            found[name] = _cut(each, tree[name])
    return found
