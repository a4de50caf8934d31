"""Conditions on places: within a shape, or near a point, on the globe.

A place is a GeoJSON point, or a pair of longitude and latitude. The edges of a polygon are the
shortest ways between its corners, and it is smaller than half of the globe.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import asin, atan2, cos, isfinite, pi, radians, sin, sqrt
from typing import Any

from penstock.core.live.refusal import refuse

__all__ = ["GEOGRAPHY"]

Test = Callable[[Any], bool]
Point = tuple[float, float]
"""Longitude and latitude."""

EARTH_METERS = 6_378_100.0
"""The radius that distances are computed with."""
_ON_EDGE = 1e-9
"""A place is on an edge where the corners of the edge stand opposite, within this angle."""
_CORNERS = 4
"""A ring has three corners at least, and the first again."""


def point_of(value: Any) -> Point | None:
    """Return the place that a value is; None: it is none."""
    if isinstance(value, dict):
        value = value.get("coordinates") if value.get("type") == "Point" else None
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - a pair
        return None
    if not all(type(each) in (int, float) and isfinite(each) for each in value):
        return None
    return float(value[0]), float(value[1])


def within(operand: Any, path: str) -> Test:
    """Return whether a place is within a shape."""
    shape = operand if isinstance(operand, dict) and len(operand) == 1 else {}
    geometry, given = shape.get("$geometry"), shape.get("$centerSphere")
    if isinstance(geometry, dict):
        kind, coordinates = geometry.get("type"), geometry.get("coordinates")
        if kind == "Polygon":
            return _within_polygons([_rings(coordinates, path)])
        if kind == "MultiPolygon" and isinstance(coordinates, list) and coordinates:
            return _within_polygons([_rings(each, path) for each in coordinates])
    if isinstance(given, list) and len(given) == 2:  # noqa: PLR2004 - a center and a radius
        center, angle = point_of(given[0]), given[1]
        if center is not None and type(angle) in (int, float) and angle >= 0:
            return _near(center, 0.0, float(angle) * EARTH_METERS)
    text = "it takes a polygon: {'$geometry': {'type': 'Polygon', 'coordinates': [ring, ...]}}"
    raise refuse(text, operator="$geoWithin", path=path)


def near(name: str) -> Callable[[Any, str], Test]:
    """Return what makes the condition that a place is near a point; it does not sort."""

    def make(operand: Any, path: str) -> Test:
        given = operand if isinstance(operand, dict) else {}
        center = point_of(given.get("$geometry"))
        least, most = given.get("$minDistance", 0), given.get("$maxDistance", EARTH_METERS * pi)
        known = set(given) <= {"$geometry", "$minDistance", "$maxDistance"}
        meters = all(type(each) in (int, float) and each >= 0 for each in (least, most))
        if center is None or not known or not meters:
            text = "it takes {'$geometry': point, '$maxDistance': meters, '$minDistance': meters}"
            raise refuse(text, operator=name, path=path)
        return _near(center, float(least), float(most))

    return make


def _near(center: Point, least: float, most: float) -> Test:
    def test(value: Any) -> bool:
        place = point_of(value)
        return place is not None and least <= _meters(center, place) <= most

    return test


def _meters(one: Point, other: Point) -> float:
    """Return the way between two places over the globe."""
    (x1, y1), (x2, y2) = map(_radians, (one, other))
    half = sin((y2 - y1) / 2) ** 2 + cos(y1) * cos(y2) * sin((x2 - x1) / 2) ** 2
    return 2 * EARTH_METERS * asin(min(1.0, sqrt(half)))


def _rings(given: Any, path: str) -> list[list[Point]]:
    """Return the rings of a polygon: its outline, then its holes."""
    rings = [_ring(each) for each in given] if isinstance(given, list) else []
    found = [ring for ring in rings if ring is not None]
    if not found or len(found) < len(rings):
        text = f"a ring has {_CORNERS} positions at least, and ends where it began"
        raise refuse(text, operator="$geoWithin", path=path)
    return found


def _ring(given: Any) -> list[Point] | None:
    places = [point_of(each) for each in given] if isinstance(given, list) else []
    ring = [place for place in places if place is not None]
    whole = len(ring) == len(places) >= _CORNERS and ring[0] == ring[-1]
    return ring if whole else None


def _within_polygons(polygons: Sequence[list[list[Point]]]) -> Test:
    def test(value: Any) -> bool:
        place = point_of(value)
        return place is not None and any(_is_inside(place, rings) for rings in polygons)

    return test


def _is_inside(place: Point, rings: list[list[Point]]) -> bool:
    outline, *holes = rings
    return _goes_round(place, outline) and not any(_goes_round(place, hole) for hole in holes)


def _goes_round(place: Point, ring: list[Point]) -> bool:
    """Return whether a ring goes round a place: as seen from there, its corners turn once."""
    if place in ring:
        return True
    bearings = [_bearing(place, corner) for corner in ring]
    turned = 0.0
    for before, after in pairwise(bearings):
        turn = after - before
        turn -= 2 * pi * round(turn / (2 * pi))
        if abs(turn) > pi - _ON_EDGE:
            return True
        turned += turn
    return abs(turned) > pi


def _bearing(place: Point, corner: Point) -> float:
    (x1, y1), (x2, y2) = map(_radians, (place, corner))
    east = sin(x2 - x1) * cos(y2)
    return atan2(east, cos(y1) * sin(y2) - sin(y1) * cos(y2) * cos(x2 - x1))


def _radians(place: Point) -> Point:
    return radians(place[0]), radians(place[1])


GEOGRAPHY: dict[str, Callable[[Any, str], Test]] = {
    "$geoWithin": within,
    "$near": near("$near"),
    "$nearSphere": near("$nearSphere"),
}
"""What each operator makes of its operand, at a path."""
