"""Dashboards and alerts for Grafana and Prometheus, made from the names of the metrics."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from penstock.core.status.exposition import CATALOGUE, PREFIX

__all__ = ["ALERTS", "Alert", "alert_rules", "dashboard"]

_HISTOGRAMS = frozenset(
    {"batch_seconds", "process_seconds", "commit_seconds", "end_to_end_seconds"}
)
_CHOSEN = '{app=~"$app",part=~"$part"}'
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_OVERVIEW = (
    "up",
    "lag_records",
    "received_records_total",
    "written_records_total",
    "dead_lettered_records_total",
    "end_to_end_seconds",
    "batch_seconds",
    "process_restarts_total",
    "watermark_behind_clock_seconds",
)
"""What stands on top: what an operator looks at first."""


class Alert(NamedTuple):
    """A condition that somebody must know of."""

    name: str
    expression: str
    wait: str
    """For how long it must hold."""
    severity: str
    says: str


ALERTS = (
    Alert(
        "PenstockPartDown",
        "penstock_up == 0",
        "2m",
        "critical",
        "{{ $labels.part }} of {{ $labels.app }} does not run as it should",
    ),
    Alert(
        "PenstockPartSilent",
        "penstock_report_age_seconds > 120",
        "1m",
        "critical",
        "{{ $labels.part }} of {{ $labels.app }} has not reported for {{ $value }} seconds",
    ),
    Alert(
        "PenstockRestarts",
        "increase(penstock_process_restarts_total[15m]) > 3",
        "0m",
        "warning",
        "{{ $labels.part }} of {{ $labels.app }} dies again and again",
    ),
    Alert(
        "PenstockFallsBehind",
        "deriv(penstock_lag_records[15m]) > 0 and penstock_lag_records > 10000",
        "15m",
        "warning",
        "{{ $labels.part }} of {{ $labels.app }} is {{ $value }} records behind, and more and more",
    ),
    Alert(
        "PenstockDeadLetters",
        "increase(penstock_dead_lettered_records_total[10m]) > 0",
        "0m",
        "warning",
        "{{ $labels.part }} of {{ $labels.app }} could not use {{ $value }} records",
    ),
    Alert(
        "PenstockSkipped",
        "increase(penstock_skipped_offsets_total[10m]) > 0",
        "0m",
        "critical",
        "retention deleted records before {{ $labels.part }} of {{ $labels.app }} read them",
    ),
    Alert(
        "PenstockUnaccounted",
        "penstock_received_records_total - penstock_passed_records_total"
        " - penstock_filtered_records_total - penstock_dead_lettered_records_total"
        " - penstock_in_flight_records != 0",
        "5m",
        "critical",
        "records of {{ $labels.part }} of {{ $labels.app }} are unaccounted for",
    ),
    Alert(
        "PenstockRetrying",
        "penstock_retrying_partitions > 0",
        "5m",
        "warning",
        "a record blocks {{ $value }} partitions of {{ $labels.part }} of {{ $labels.app }}",
    ),
    Alert(
        "PenstockWatermarkBehind",
        "penstock_watermark_behind_clock_seconds > 600",
        "10m",
        "warning",
        "the results of {{ $labels.part }} of {{ $labels.app }} are {{ $value }} seconds old",
    ),
)
"""What to be woken for; the thresholds are a start."""


def alert_rules() -> str:
    """Return the alerts as a rule file of Prometheus."""
    lines = ["groups:", "  - name: penstock", "    rules:"]
    for alert in ALERTS:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {json.dumps(alert.expression)}",
            f"        for: {alert.wait}",
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {json.dumps(alert.says)}",
        ]
    return "\n".join(lines) + "\n"


def dashboard() -> dict[str, Any]:
    """Return a dashboard of Grafana that shows every metric there is."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, names in _rows():
        panels.append(_row(title, top, len(panels) + 1))
        top += 1
        for place, name in enumerate(names):
            x, y = place % _COLUMNS * _WIDTH, top + place // _COLUMNS * _HEIGHT
            panels.append(_panel(name, x=x, y=y, number=len(panels) + 1))
        top += -(-len(names) // _COLUMNS) * _HEIGHT
    return {
        "title": "Penstock",
        "uid": "penstock",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "source",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                },
                _variable("app", f"label_values({PREFIX}up, app)"),
                _variable("part", f'label_values({PREFIX}up{{app=~"$app"}}, part)'),
            ]
        },
        "panels": panels,
    }


def _rows() -> Iterator[tuple[str, list[str]]]:
    yield "Is it well?", list(_OVERVIEW)
    yield "Every metric", [name for name in CATALOGUE if name not in _OVERVIEW]


def _row(title: str, y: int, number: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": _WIDTH * _COLUMNS, "h": 1}
    return {"type": "row", "title": title, "id": number, "gridPos": place, "panels": []}


def _panel(name: str, *, x: int, y: int, number: int) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": CATALOGUE[name],
        "id": number,
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": _unit(name), "min": 0}, "overrides": []},
        "targets": [
            {"refId": "A", "expr": _query(name), "legendFormat": "{{part}} {{process}}"},
        ],
    }


def _query(name: str) -> str:
    series = f"{PREFIX}{name}"
    if name in _HISTOGRAMS:
        rate = f"sum by (le, part, process) (rate({series}_bucket{_CHOSEN}[$__rate_interval]))"
        return f"histogram_quantile(0.95, {rate})"
    if name.endswith("_total"):
        return f"rate({series}{_CHOSEN}[$__rate_interval])"
    return f"{series}{_CHOSEN}"


def _unit(name: str) -> str:
    if name.endswith("_total"):
        return "s" if "seconds" in name else "cps"
    if "timestamp" in name:
        return "dateTimeAsIso"
    return "s" if name.endswith("seconds") else "bytes" if name.endswith("bytes") else "short"


def _variable(name: str, query: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": query,
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }
