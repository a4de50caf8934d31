"""Plots as inline SVG: points over time, bars, and lanes of states; texts are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["COLOURS", "bars", "lanes", "points"]

WIDTH, HEIGHT, LEFT, BOTTOM = 860, 220, 150, 24
COLOURS = ("#3b6ea5", "#c0392b", "#d68910", "#2e8b57", "#7d5ba6", "#7f8c8d", "#16a2b8", "#8b5a2b")
LANE = 18

Series = Mapping[str, Sequence[tuple[float, float]]]


def _svg(height: float, body: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(names: Sequence[str]) -> list[str]:
    found = []
    for number, name in enumerate(names):
        x, colour = LEFT + 170 * (number % 4), COLOURS[number % len(COLOURS)]
        y = 12 + 14 * (number // 4)
        found.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{colour}"/>')
        found.append(_text(x + 13, y, name[:26]))
    return found


def points(series: Series, title: str, *, joined: Sequence[str] = ()) -> str:
    """Return points over time, by seconds and value; the series of ``joined`` are lines."""
    everything = [point for each in series.values() for point in each]
    if not everything:
        return _svg(40, [_text(LEFT, 24, "nothing to show")], title)
    (x0, x1), (y0, y1) = (_span([point[n] for point in everything]) for n in (0, 1))
    top = 22 + 14 * ((len(series) - 1) // 4)
    body = _legend(list(series))
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - top)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>')
        body.append(_text(LEFT - 6, y + 4, f"{y0 + share * (y1 - y0):.4g}", anchor="end"))
    body.append(_text(LEFT, HEIGHT - 6, "0 s"))
    body.append(_text(WIDTH, HEIGHT - 6, f"{x1 - x0:.0f} s", anchor="end"))
    for number, (name, found) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [
            (
                LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - 4),
                HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - BOTTOM - top),
            )
            for x, y in sorted(found)
        ]
        if name in joined:
            way = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            body.append(f'<polyline points="{way}" fill="none" stroke="{colour}"/>')
        else:
            body += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in placed
            ]
    return _svg(HEIGHT, body, title)


def bars(values: Mapping[str, float], title: str, *, unit: str = "") -> str:
    """Return a bar for each name."""
    highest = max(values.values(), default=0) or 1
    body = []
    for number, (name, value) in enumerate(values.items()):
        y = number * LANE + 4
        width = value / highest * (WIDTH - LEFT - 90)
        body.append(_text(LEFT - 6, y + 11, name[:24], anchor="end"))
        size = f'width="{width:.1f}" height="{LANE - 5}"'
        body.append(f'<rect x="{LEFT}" y="{y}" {size} fill="{COLOURS[0]}"/>')
        body.append(_text(LEFT + width + 5, y + 11, f"{value:,.4g}{unit}"))
    if not values:
        body.append(_text(LEFT, 16, "nothing to show"))
    return _svg(max(len(values), 1) * LANE + 6, body, title)


def lanes(
    spans: Mapping[str, Sequence[tuple[float, float, str]]], title: str, *, states: Sequence[str]
) -> str:
    """Return a lane for each name, with its states from when to when."""
    everything = [at for each in spans.values() for begin, end, _ in each for at in (begin, end)]
    if not everything:
        return _svg(40, [_text(LEFT, 24, "nothing to show")], title)
    x0, x1 = _span(everything)
    body = _legend(states)
    top = 22 + 14 * ((len(states) - 1) // 4)
    for number, (name, found) in enumerate(spans.items()):
        y = top + number * LANE
        body.append(_text(LEFT - 6, y + 11, name[:24], anchor="end"))
        for begin, end, state in found:
            x = LEFT + (begin - x0) / (x1 - x0) * (WIDTH - LEFT - 4)
            width = max((end - begin) / (x1 - x0) * (WIDTH - LEFT - 4), 1.5)
            colour = COLOURS[states.index(state) % len(COLOURS)] if state in states else "#000"
            body.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LANE - 5}" '
                f'fill="{colour}"><title>{escape(state)}</title></rect>'
            )
    return _svg(top + len(spans) * LANE + 6, body, title)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
