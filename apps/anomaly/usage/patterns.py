"""The model of usage: patterns of how devices of a kind are used, and which one is near; pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from penstock import record

__all__ = ["MODEL", "Kind", "Usage", "check", "nearest"]

MODEL = "usage"
"""The name of the model among others."""
STAYS = 0.8
"""A device leaves its pattern for one that is nearer than this share of the distance."""


@record()
class Kind:
    """The patterns of one kind of device, in the order of how many devices follow them."""

    levels: list[str]
    """The features that are compared."""
    means: list[float]
    scales: list[float]
    """What each level is measured by: so all count the same."""
    centres: list[list[float]]
    """The middle of each pattern, in these units."""
    shares: list[float]
    """How many of the devices follow each."""


@record()
class Usage:
    """The patterns of each kind of device."""

    kinds: dict[str, Kind]


def nearest(kind: Kind, levels: Mapping[str, float], *, now: int | None = None) -> int | None:
    """Return the number of the nearest pattern; None: a level is missing.

    A device that follows pattern ``now`` stays there until another one is clearly nearer.
    """
    try:
        place = [
            (levels[name] - mean) / scale
            for name, mean, scale in zip(kind.levels, kind.means, kind.scales, strict=True)
        ]
    except KeyError:
        return None
    away = [
        sum((here - there) ** 2 for here, there in zip(place, centre, strict=True))
        for centre in kind.centres
    ]
    best = min(range(len(away)), key=away.__getitem__)
    if now is not None and now < len(away) and away[best] >= STAYS * STAYS * away[now]:
        return now
    return best


def check(usage: Usage) -> None:
    """Raise a ValueError for a model that makes no sense."""
    for name, kind in usage.kinds.items():
        wide = len(kind.levels)
        rows = (kind.means, kind.scales, *kind.centres)
        if not kind.centres or len(kind.shares) != len(kind.centres):
            raise ValueError(f"the patterns of {name!r} are not whole")
        if not wide or any(len(row) != wide for row in rows):
            raise ValueError(f"the patterns of {name!r} have not {wide} levels")
        if not all(isfinite(value) for row in rows for value in row) or min(kind.scales) <= 0:
            raise ValueError(f"the patterns of {name!r} have no scale")
