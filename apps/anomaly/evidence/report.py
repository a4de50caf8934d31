"""``python -m apps.anomaly report``: one HTML file that shows what a run did; nothing is loaded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from apps.anomaly.evidence.plots import bars, lanes, points
from apps.anomaly.evidence.running import tailed

__all__ = ["TOPICS", "page", "write"]

Rows = Sequence[Mapping[str, Any]]

TOPICS = {
    "telemetry": 50_000,
    "anomalies": 20_000,
    "samples": 20_000,
    "drift_alarms": 1_000,
    "decisions": 1_000,
    "model_versions": 200,
    "device_changes": 20_000,
    "notices": 1_000,
}
"""What is read, and how much of it at most."""
STATES = {
    "healthy": "#2e8b57",
    "suspect": "#e0b000",
    "failing": "#c0392b",
    "draining": "#d2691e",
    "off": "#555555",
    "repaired": "#3b6ea5",
}
MOST_LANES, MOST_POINTS, MOST_ROWS, MOST_VERSIONS = 25, 1_500, 30, 6
PARTS, SLICES = 10, 40
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:900px;padding:0 1rem;color:#222}
svg{width:100%;height:auto;background:#fafafa;border:1px solid #e4e4e4}
svg text{font:11px system-ui,sans-serif;fill:#444}.g{stroke:#ddd}
table{border-collapse:collapse;width:100%;font-size:13px}
table{display:block;overflow-x:auto}
td,th{border-bottom:1px solid #ddd;padding:.25rem .5rem;text-align:left}
"""


def write(target: Path) -> None:
    """Read the topics of the application, and write the page."""
    found = {topic: tailed(topic, limit=limit) for topic, limit in TOPICS.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(page(found), encoding="utf-8")
    partial.replace(target)


def page(found: Mapping[str, Rows]) -> str:
    """Return the page for what was read of each topic."""
    sections: list[tuple[str, str, Callable[[Mapping[str, Rows]], str]]] = [
        ("Telemetry", "The device with the most anomalies; anomalies are marked.", _telemetry),
        (
            "Scores",
            "Of each version, how many samples had which score, out of a thousand.",
            _scores,
        ),
        ("Drift", "The population stability index of each alarm; 0.25 is the limit.", _drift),
        (
            "Take-over",
            "The share of samples that each version scored, and what led to it.",
            _takeover,
        ),
        ("Models", "Each version, and the decisions of training.", _models),
        ("Life cycles", "The devices that were not healthy all the time.", _lives),
        ("Recovery", "Seconds from failing to off, of each recovery.", _recovery),
    ]
    body = "".join(f"<h2>{title}</h2><p>{text}</p>{make(found)}" for title, text, make in sections)
    counts = ", ".join(f"{len(rows):,} {topic}" for topic, rows in found.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>Anomaly detection</title>'
        f"<style>{_STYLE}</style><h1>Anomaly detection</h1>"
        f"<p>Made at {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, from {counts}.</p>{body}</html>\n"
    )


def _at(row: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(row["at"]).timestamp()


def _telemetry(found: Mapping[str, Rows]) -> str:
    counts = Counter(row["device"] for row in found["anomalies"])
    names = [name for name, _ in counts.most_common(1)]
    names = names or [row["device"] for row in found["telemetry"][:1]]
    mine = [row for row in found["telemetry"] if row["device"] in names]
    marked = {
        (row["started"], row["number"]): row for row in found["anomalies"] if row["device"] in names
    }
    blamed = Counter(
        feature.rpartition(".")[0] for row in marked.values() for feature in row["contributions"]
    )
    metrics = Counter(metric for row in mine for metric in row["metrics"])
    metric = next((name for name, _ in blamed.most_common() if name in metrics), None)
    metric = metric or next(iter(metrics), "")
    values = [(row, row["metrics"][metric]) for row in mine if metric in row["metrics"]]
    step = max(len(values) // MOST_POINTS, 1)
    usual = [(_at(row), value) for row, value in values[::step]]
    strange = [
        (_at(row), value) for row, value in values if (row["started"], row["number"]) in marked
    ]
    title = f"{metric} of {names[0] if names else 'no device'}"
    return points({title: usual, "anomalies": strange}, title, joined=(title,))


def _scores(found: Mapping[str, Rows]) -> str:
    by: dict[int, Counter[int]] = defaultdict(Counter)
    for row in found["samples"]:
        if row.get("score") is not None:
            by[row["model_version"]][min(int(row["score"] * PARTS), PARTS - 1)] += 1
    shown = []
    for version, counts in sorted(by.items()):
        total = sum(counts.values())
        parts = {
            f"{part / PARTS:g} to {(part + 1) / PARTS:g}": 1_000 * counts[part] / total
            for part in range(PARTS)
        }
        shown.append(f"<h3>Version {version}: {total:,} samples</h3>")
        shown.append(bars(parts, f"scores of version {version}"))
    return "".join(shown) or bars({}, "scores")


def _drift(found: Mapping[str, Rows]) -> str:
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in found["drift_alarms"]:
        series[f"version {row['version']}, {row['of']}"].append((_at(row), row["index"]))
    kept = dict(sorted(series.items(), key=lambda each: -len(each[1]))[:8])
    return points(kept, "drift")


def _takeover(found: Mapping[str, Rows]) -> str:
    """Return which version scored when, and what led to it."""
    scored = [row for row in found["samples"] if row.get("model_version")]
    if not scored:
        return points({}, "take-over")
    first, last = min(map(_at, scored)), max(map(_at, scored))
    wide = (last - first) / SLICES or 1.0
    by: dict[int, Counter[int]] = defaultdict(Counter)
    for row in scored:
        by[min(int((_at(row) - first) / wide), SLICES - 1)][row["model_version"]] += 1
    versions = sorted({row["model_version"] for row in scored})[-MOST_VERSIONS:]
    lines = {
        f"version {version}": [
            (first + (part + 0.5) * wide, counts[version] / counts.total())
            for part, counts in sorted(by.items())
        ]
        for version in versions
    }
    published = [_at(row) for row in found["decisions"] if row["published"]]
    marks = {"drift": [_at(row) for row in found["drift_alarms"]], "published": published}
    return points(lines, "take-over", joined=list(lines), marks=marks)


def _models(found: Mapping[str, Rows]) -> str:
    versions = [
        (row["version"], row["model"], row["trained_on"][:90], _figures(row["figures"]))
        for row in found["model_versions"][-MOST_ROWS:]
    ]
    decisions = [
        (
            row["at"][:19],
            f"version {row['published']}" if row["published"] else "none",
            f"version {row['in_service']}" if row["in_service"] else "none",
            row["chosen"],
            _figures(dict(sorted(row["losses"].items(), key=lambda each: each[1])[:4])),
        )
        for row in found["decisions"][-MOST_ROWS:]
    ]
    return _table(("version", "model", "trained on", "figures"), versions) + _table(
        ("decided at", "published", "in service", "best candidate", "losses"), decisions
    )


def _figures(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())


def _lives(found: Mapping[str, Rows]) -> str:
    by: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in found["device_changes"]:
        if row["legal"]:
            by[row["device"]].append(row)
    last = max((_at(rows[-1]) for rows in by.values()), default=0.0)
    spans: dict[str, list[tuple[float, float, str]]] = {}
    troubled = sorted(by.items(), key=lambda each: -len(each[1]))[:MOST_LANES]
    for device, rows in sorted(troubled):
        ends = [*(_at(row) for row in rows[1:]), last]
        spans[device] = [(_at(row), end, row["state"]) for row, end in zip(rows, ends, strict=True)]
    return lanes(spans, "life cycles", states=STATES)


def _recovery(found: Mapping[str, Rows]) -> str:
    failing: dict[str, float] = {}
    took: dict[str, float] = {}
    for row in sorted((row for row in found["device_changes"] if row["legal"]), key=_at):
        if row["state"] == "failing":
            failing.setdefault(row["device"], _at(row))
        elif row["state"] == "off" and row["device"] in failing:
            name = f"{len(took) + 1}: {row['device']}"
            took[name] = _at(row) - failing.pop(row["device"])
    shown = bars(dict(list(took.items())[:MOST_LANES]), "recovery times", unit=" s")
    middle = f", the median is {median(took.values()):.1f} s" if took else ""
    told = _table(
        ("at", "device", "notice"),
        [(row["at"][:19], row["device"], row["text"]) for row in found["notices"][-MOST_ROWS:]],
    )
    return f"<p>{len(took)} recoveries{middle}.</p>{shown}{told}"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return f"<p>None yet: {escape(', '.join(head))}.</p>"
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{cells}</tr>{lines}</table>"
