"""Where the nodes of a drawing stand: in layers from left to right, with few crossings.

A node stands to the right of all that feeds it. An edge over several layers passes through a
point in each of them, so that it goes round the boxes in between. Edges that close a cycle are
laid out the other way round and drawn against the flow.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

__all__ = ["Box", "Layout", "Route", "Size", "lay_out"]

_SWEEPS = 12
_LAYER_GAP = 72.0
_NODE_GAP = 26.0
_POINT_HEIGHT = 8.0
_BACKWARD_ASIDE = 0.28


@dataclass(frozen=True, slots=True)
class Size:
    """How large a node is."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    """A node that has its place; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's way: from the side of its start, through points, to the side of its end."""

    start: str
    end: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """All boxes and routes, and the size of the whole."""

    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]
    width: float
    height: float


def lay_out(nodes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> Layout:
    """Return a place for each node and a way for each edge between two of them."""
    edges = [(start, end) for start, end in edges if start in nodes and end in nodes]
    backward = _backward(nodes, edges)
    forward = [(end, start) if (start, end) in backward else (start, end) for start, end in edges]
    rank = _ranks(nodes, forward)
    chains = [_chain(number, edge, rank) for number, edge in enumerate(forward)]
    layers, before, after = _layers(nodes, rank, chains)
    _order(layers, before, after)
    heights = {name: nodes[name].height if name in nodes else _POINT_HEIGHT for name in rank}
    centres = _centres(layers, before, after, heights)
    return _placed(nodes, layers, rank, centres, list(zip(edges, chains, strict=True)))


def _backward(nodes: Iterable[str], edges: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the edges that close a cycle, as a walk in order of declaration meets them."""
    targets = defaultdict(list)
    for start, end in edges:
        targets[start].append(end)
    done: set[str] = set()
    open_: dict[str, None] = {}
    found: set[tuple[str, str]] = set()

    def walk(name: str) -> None:
        open_[name] = None
        for end in targets[name]:
            if end in open_:
                found.add((name, end))
            elif end not in done:
                walk(end)
        del open_[name]
        done.add(name)

    fed = {end for _, end in edges}
    for name in sorted(nodes, key=lambda name: name in fed):
        if name not in done:
            walk(name)
    return found


def _ranks(nodes: Iterable[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return each node's layer: one behind the last of what feeds it."""
    sources = defaultdict(list)
    for start, end in edges:
        if start != end:
            sources[end].append(start)
    rank: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in rank:
            rank[name] = max((of(source) + 1 for source in sources[name]), default=0)
        return rank[name]

    for name in nodes:
        of(name)
    # A node that only feeds stands right before the first that it feeds, not at the far left.
    targets = defaultdict(list)
    for start, end in edges:
        targets[start].append(end)
    for name in list(rank):
        if not sources[name] and targets[name]:
            rank[name] = max(0, min(rank[end] for end in targets[name]) - 1)
    return rank


def _chain(number: int, edge: tuple[str, str], rank: dict[str, int]) -> list[str]:
    """Return an edge as the nodes it passes, a new point for each layer between."""
    start, end = edge
    between = range(rank[start] + 1, rank[end])
    points = [f"{number}/{layer}" for layer in between]
    rank |= dict(zip(points, between, strict=True))
    return [start, *points, end]


def _layers(
    nodes: Iterable[str], rank: Mapping[str, int], chains: Sequence[Sequence[str]]
) -> tuple[list[list[str]], dict[str, list[str]], dict[str, list[str]]]:
    """Return the layers in a first order, and what stands before and after each node."""
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    layers: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for chain in chains:
        for one, next_ in itertools.pairwise(chain):
            after[one].append(next_)
            before[next_].append(one)
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name not in seen:
            seen.add(name)
            layers[rank[name]].append(name)
            for next_ in after[name]:
                visit(next_)

    for name in sorted(nodes, key=lambda name: bool(before[name])):
        visit(name)
    return layers, before, after


def _order(
    layers: list[list[str]], before: Mapping[str, list[str]], after: Mapping[str, list[str]]
) -> None:
    """Sort each layer by where its neighbours stand, to and fro; keep what crosses least."""
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers, after)
    for sweep in range(_SWEEPS):
        onward = sweep % 2 == 0
        beside = before if onward else after
        for layer in layers if onward else reversed(layers):
            place = {name: at for row in layers for at, name in enumerate(row)}
            layer.sort(
                key=lambda name: (
                    mean(place[other] for other in beside[name]) if beside[name] else place[name]
                )
            )
        if (crossings := _crossings(layers, after)) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _crossings(layers: Sequence[Sequence[str]], after: Mapping[str, list[str]]) -> int:
    count = 0
    for layer, following in itertools.pairwise(layers):
        place = {name: at for at, name in enumerate(following)}
        ends = [[place[end] for end in after[name] if end in place] for name in layer]
        for upper, row in enumerate(ends):
            count += sum(a > b for a in row for lower in ends[upper + 1 :] for b in lower)
    return count


def _centres(
    layers: Sequence[Sequence[str]],
    before: Mapping[str, list[str]],
    after: Mapping[str, list[str]],
    heights: Mapping[str, float],
) -> dict[str, float]:
    """Return the height at which each node's middle stands, near those of its neighbours."""
    centre: dict[str, float] = {}
    for layer in layers:
        at = 0.0
        for name in layer:
            centre[name] = at + heights[name] / 2
            at += heights[name] + _NODE_GAP
    for sweep in range(_SWEEPS):
        onward = sweep % 2 == 0
        for layer in layers if onward else reversed(layers):
            beside = before if onward else after
            wanted = [
                mean(centre[other] for other in beside[name]) if beside[name] else centre[name]
                for name in layer
            ]
            _settle(layer, wanted, heights, centre)
    return centre


def _settle(
    layer: Sequence[str],
    wanted: Sequence[float],
    heights: Mapping[str, float],
    centre: dict[str, float],
) -> None:
    """Put nodes as near as can be to where they want to be, in order and apart.

    Nodes that would overlap become a block that stands at the mean of its members' wishes.
    """
    offsets = [0.0]
    for one, next_ in itertools.pairwise(layer):
        offsets.append(offsets[-1] + (heights[one] + heights[next_]) / 2 + _NODE_GAP)
    blocks: list[list[int]] = []
    for index in range(len(layer)):
        blocks.append([index])
        while len(blocks) > 1 and _shift(blocks[-2], wanted, offsets) >= _shift(
            blocks[-1], wanted, offsets
        ):
            last = blocks.pop()
            blocks[-1] += last
    for block in blocks:
        shift = _shift(block, wanted, offsets)
        for index in block:
            centre[layer[index]] = offsets[index] + shift


def _shift(block: Sequence[int], wanted: Sequence[float], offsets: Sequence[float]) -> float:
    return mean(wanted[index] - offsets[index] for index in block)


def _placed(
    nodes: Mapping[str, Size],
    layers: Sequence[Sequence[str]],
    rank: Mapping[str, int],
    centres: Mapping[str, float],
    chains: Sequence[tuple[tuple[str, str], list[str]]],
) -> Layout:
    """Return boxes and routes with the upper left corner of the whole at the origin."""
    if not nodes:
        return Layout({}, (), 0.0, 0.0)
    widths = [max([nodes[n].width for n in layer if n in nodes], default=0.0) for layer in layers]
    lefts = [sum(widths[:at]) + at * _LAYER_GAP for at in range(len(layers))]
    top = min(centres[name] - size.height / 2 for name, size in nodes.items())
    top = min([top, *(centre - _POINT_HEIGHT / 2 for centre in centres.values())])
    boxes = {
        name: Box(
            lefts[rank[name]] + (widths[rank[name]] - size.width) / 2,
            centres[name] - size.height / 2 - top,
            size.width,
            size.height,
        )
        for name, size in nodes.items()
    }
    routes = []
    for (start, end), chain in chains:
        points: list[tuple[float, float]] = []
        # What flows backward leaves and enters below the middle, apart from what flows onward.
        aside = 0.0 if chain[0] == start else _BACKWARD_ASIDE
        for name in chain:
            left, width, y = lefts[rank[name]], widths[rank[name]], centres[name] - top
            if name in boxes:
                left, width = boxes[name].x, boxes[name].width
                y += aside * boxes[name].height
            points += [(left, y), (left + width, y)]
        points = points[1:-1]
        routes.append(Route(start, end, tuple(points[::-1] if aside else points)))
    bottom = max(centre - top + _POINT_HEIGHT for centre in centres.values())
    height = max(bottom, *(box.y + box.height for box in boxes.values()))
    return Layout(boxes, tuple(routes), lefts[-1] + widths[-1], height)
