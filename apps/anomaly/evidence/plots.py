"""Plots as inline SVG: points over time, bars, and lanes of states; texts are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

__all__ = ["COLOURS", "bars", "lanes", "points"]

WIDTH, HEIGHT, LEFT, BOTTOM = 860, 180, 150, 24
COLOURS = ("#3b6ea5", "#c0392b", "#d68910", "#2e8b57", "#7d5ba6", "#7f8c8d", "#16a2b8", "#8b5a2b")
LANE = 18
LETTER, MOST_LETTERS, MOST_NAME = 6.4, 60, 22
"""About how wide a letter is; so many of a name are shown."""

Series = Mapping[str, Sequence[tuple[float, float]]]


def _svg(height: float, body: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(names: Sequence[str], colours: Sequence[str]) -> tuple[list[str], float]:
    """Return what colours mean, in as many lines as that takes, and where the plot may begin."""
    found: list[str] = []
    x, y = float(LEFT), 13.0
    for name, colour in zip(names, colours, strict=True):
        shown = name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "\u2026"
        wide = 13 + LETTER * len(shown) + 14
        if x > LEFT and x + wide > WIDTH:
            x, y = float(LEFT), y + 15
        found.append(f'<rect x="{x:.1f}" y="{y - 8}" width="9" height="9" fill="{colour}"/>')
        found.append(_text(x + 13, y, shown))
        x += wide
    return found, y + 10


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def points(
    series: Series,
    title: str,
    *,
    joined: Sequence[str] = (),
    marks: Mapping[str, Sequence[float]] | None = None,
) -> str:
    """Return points over time, by seconds since 1970 and value.

    The series of ``joined`` are lines; ``marks`` are moments, dashed from top to bottom.
    """
    marks = {name: found for name, found in (marks or {}).items() if found}
    everything = [point for each in series.values() for point in each]
    if not everything:
        return _nothing(title)
    moments = [at for each in marks.values() for at in each]
    x0, x1 = _span([*(x for x, _ in everything), *moments])
    y0, y1 = _span([y for _, y in everything])
    colours = dict(zip((*series, *marks), _colours(len(series) + len(marks)), strict=True))
    body, top = _legend(list(colours), list(colours.values()))
    bottom = top + HEIGHT
    across = (WIDTH - LEFT - 4) / (x1 - x0)
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * HEIGHT
        body.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>')
        body.append(_text(LEFT - 6, y + 4, f"{y0 + share * (y1 - y0):.4g}", anchor="end"))
    body += _clock(x0, x1, bottom + BOTTOM - 8)
    for name, found in marks.items():
        for at in found:
            x = LEFT + (at - x0) * across
            ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"'
            body.append(f'<line {ends} stroke="{colours[name]}" stroke-dasharray="4 3"/>')
    for name, each in series.items():
        placed = [
            (LEFT + (x - x0) * across, bottom - (y - y0) / (y1 - y0) * HEIGHT)
            for x, y in sorted(each)
        ]
        if name in joined:
            way = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            body.append(f'<polyline points="{way}" fill="none" stroke="{colours[name]}"/>')
        else:
            body += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colours[name]}"/>'
                for x, y in placed
            ]
    return _svg(bottom + BOTTOM, body, title)


def _clock(first: float, last: float, y: float) -> list[str]:
    """Return the time at both ends and in the middle."""
    shown = []
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = datetime.fromtimestamp(first + share * (last - first), UTC)
        shown.append(_text(LEFT + share * (WIDTH - LEFT - 4), y, f"{at:%H:%M:%S}", anchor=anchor))
    return shown


def _nothing(title: str) -> str:
    return _svg(40, [_text(LEFT, 24, "nothing to show")], title)


def bars(values: Mapping[str, float], title: str, *, unit: str = "") -> str:
    """Return a bar for each name."""
    highest = max(values.values(), default=0) or 1
    body = []
    for number, (name, value) in enumerate(values.items()):
        y = number * LANE + 4
        width = value / highest * (WIDTH - LEFT - 90)
        body.append(_text(LEFT - 6, y + 11, _short(name), anchor="end"))
        size = f'width="{width:.1f}" height="{LANE - 5}"'
        body.append(f'<rect x="{LEFT}" y="{y}" {size} fill="{COLOURS[0]}"/>')
        body.append(_text(LEFT + width + 5, y + 11, f"{value:,.4g}{unit}"))
    if not values:
        body.append(_text(LEFT, 16, "nothing to show"))
    return _svg(max(len(values), 1) * LANE + 6, body, title)


def lanes(
    spans: Mapping[str, Sequence[tuple[float, float, str]]],
    title: str,
    *,
    states: Mapping[str, str],
) -> str:
    """Return a lane for each name, with its states from when to when; states have colours."""
    everything = [at for each in spans.values() for begin, end, _ in each for at in (begin, end)]
    if not everything:
        return _nothing(title)
    x0, x1 = _span(everything)
    across = (WIDTH - LEFT - 4) / (x1 - x0)
    body, top = _legend(list(states), list(states.values()))
    for number, (name, found) in enumerate(spans.items()):
        y = top + number * LANE
        body.append(_text(LEFT - 6, y + 11, _short(name), anchor="end"))
        for begin, end, state in found:
            x, width = LEFT + (begin - x0) * across, max((end - begin) * across, 1.5)
            body.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LANE - 5}" '
                f'fill="{states.get(state, "#000")}"><title>{escape(state)}</title></rect>'
            )
    bottom = top + len(spans) * LANE
    body += _clock(x0, x1, bottom + BOTTOM - 8)
    return _svg(bottom + BOTTOM, body, title)


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME else name[: MOST_NAME - 1] + "\u2026"


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
