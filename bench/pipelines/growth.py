"""What windows cost as keys, open windows and records grow tenfold, as a plot.

    python bench/pipelines/growth.py [--records 300000] [--svg FILE] [--json FILE]

Each load is measured by itself: the pane machine with early and late panes and retractions, beside
the hand-written window on the same records.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ground import Load
from panes import measure

NAMES = ["by hand", "panes"]
COLOURS = {"by hand": "#9aa5b1", "panes": "#1f6feb"}
BAR, GAP, HEIGHT, MARGIN = 26, 34, 220, 60


def loads(records: int) -> dict[str, Load]:
    base = Load(records=records, keys=1_000, windows=10)
    return {
        "base": base,
        "keys x 10": replace(base, keys=base.keys * 10),
        "windows x 10": replace(base, windows=base.windows * 10),
        "records x 10": replace(base, records=base.records * 10),
    }


def plot(found: dict[str, dict[str, float]]) -> str:
    """Return bars of records per second for each load, as SVG."""
    most = max(speed for speeds in found.values() for speed in speeds.values())
    width = MARGIN * 2 + len(found) * (len(NAMES) * BAR + GAP)
    size = f'width="{width}" height="{HEIGHT + MARGIN * 2}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<text x="{MARGIN}" y="24" font-size="14">records per second, 2 cores</text>',
    ]
    for index, (load, speeds) in enumerate(found.items()):
        left = MARGIN + index * (len(NAMES) * BAR + GAP)
        for number, name in enumerate(NAMES):
            height = HEIGHT * speeds[name] / most
            x, top = left + number * BAR, MARGIN + HEIGHT - height
            parts.append(
                f'<rect x="{x}" y="{top:.0f}" width="{BAR - 4}" height="{height:.0f}" '
                f'fill="{COLOURS[name]}"/>'
                f'<text x="{x}" y="{top - 4:.0f}" font-size="10">{speeds[name] / 1000:.0f}k</text>'
            )
        parts.append(f'<text x="{left}" y="{MARGIN + HEIGHT + 18}">{load}</text>')
    for number, name in enumerate(NAMES):
        y = MARGIN + HEIGHT + 42
        x = MARGIN + number * 90
        parts.append(
            f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{COLOURS[name]}"/>'
            f'<text x="{x + 14}" y="{y}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for name, load in loads(options.records).items():
        print(f"{name}: {load}")
        found[name] = measure(load, options.rounds, NAMES)
    for name, speeds in found.items():
        shown = "  ".join(f"{each} {speed:10,.0f}/s" for each, speed in speeds.items())
        print(f"{name:14} {shown}  {speeds['panes'] / speeds['by hand']:.2f}")
    if options.svg:
        options.svg.write_text(plot(found), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
