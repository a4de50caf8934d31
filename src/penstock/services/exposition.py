"""Reports of parts as Prometheus text and as a verdict on health."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from penstock.core.report import PartReport

__all__ = ["CONTENT_TYPE", "health", "prometheus_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX = "penstock_"
_COUNTERS = {
    "received": "input records taken in",
    "passed": "input records that gave an output",
    "filtered": "input records that gave none",
    "dead_lettered": "input records that could not be used",
    "written": "output records",
}
_HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
_WELL = frozenset({"running", "stopping", "stopped"})


def prometheus_text(reports: Iterable[tuple[str, PartReport]]) -> str:
    """Return the latest report of each process as Prometheus text; the names are the processes'.

    ``received = passed + filtered + dead_lettered + in_flight`` holds for every process.
    """
    families: dict[str, _Family] = {}

    def add(name: str, value: float, labels: str, *, kind: str = "gauge", about: str = "") -> None:
        series, brace, own = name.partition("{")
        part = next((end for end in _HISTOGRAM_PARTS if series.endswith(end)), "")
        family = families.setdefault(
            series.removesuffix(part), _Family("histogram" if part else kind, about)
        )
        inside = ",".join(filter(None, [labels, own.rstrip("}") if brace else ""]))
        family.samples.append(f"{_PREFIX}{series}{{{inside}}} {value:g}")

    for process, report in reports:
        labels = f'part="{report.part}",process="{process}"'
        for name, about in _COUNTERS.items():
            count = getattr(report.counts, name)
            add(f"{name}_records_total", count, labels, kind="counter", about=about)
        add("in_flight_records", report.counts.in_flight, labels, about="taken in, not committed")
        if report.lag is not None:
            add("lag_records", report.lag, labels, about="records behind the end of the input")
        add("up", float(report.state == "running"), labels, about="whether it runs as it should")
        for name, value in report.metrics.items():
            add(name, value, labels, kind="counter" if name.endswith("_total") else "gauge")
    return "".join(family.text(_PREFIX + name) for name, family in families.items())


@dataclass(slots=True)
class _Family:
    kind: str
    about: str
    samples: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        heads = [f"# HELP {name} {self.about}"] if self.about else []
        return "\n".join([*heads, f"# TYPE {name} {self.kind}", *self.samples]) + "\n"


def health(reports: Iterable[tuple[str, PartReport]]) -> tuple[bool, bytes]:
    """Return whether everything runs as it should, and the states as JSON."""
    listed = list(reports)
    well = bool(listed) and all(report.state in _WELL for _, report in listed)
    told = {
        "healthy": well,
        "parts": [
            {"process": process, "part": each.part, "state": each.state, "reason": _why(each)}
            for process, each in listed
        ],
    }
    return well, msgspec.json.encode(told)


def _why(report: PartReport) -> str:
    """Return why a part is not well, be it only that its state is still coming."""
    restoring = report.detail.get("restoring", "")
    return report.reason or (restoring and f"restoring {restoring}")
