"""What a combiner makes of a bag of values: kept page by page, and merged in a tree."""

from collections.abc import Sequence
from typing import Any

from penstock.core.keyed.bag import Bag
from penstock.core.panes.packing import decode, encode

__all__ = ["merged"]

_FEW = 16
"""A value that is there more often is doubled, not added one by one."""


def merged(combiner: Any, bag: Bag, key: bytes) -> Any:
    """Return the result of a combiner over all values of a key.

    What the pages came to before is kept beside them, as bytes: a combiner may change what it
    merges. Only pages that have changed since are computed anew, and what they are part of.
    """
    pages, (tree, stale) = bag.pages(key), bag.made(key)
    count = len(pages)
    if not tree:
        stale = set(range(count))
    for number in stale:
        tree[count + number] = encode(_of_page(combiner, sorted(pages[number].items())))
    above = {(count + number) // 2 for number in stale} - {0}
    while above:
        for place in above:
            left, right = decode(tree[2 * place]), decode(tree[2 * place + 1])
            tree[place] = encode(combiner.merge(left, right))
        above = {place // 2 for place in above} - {0}
    return combiner.result(decode(tree[1]))


def _of_page(combiner: Any, values: Sequence[tuple[Any, int]]) -> Any:
    held = combiner.zero()
    for value, often in values:
        if often > _FEW:
            held = combiner.merge(held, _repeated(combiner, value, often))
            continue
        for _ in range(often):
            held = combiner.add(held, value)
    return held


def _repeated(combiner: Any, value: Any, often: int) -> Any:
    """Return what a value comes to that is there so often, by doubling."""
    if often == 1:
        return combiner.add(combiner.zero(), value)
    half = encode(_repeated(combiner, value, often // 2))
    held = combiner.merge(decode(half), decode(half))
    return combiner.add(held, value) if often % 2 else held
