"""One look at everything that runs: what is well, what is not, since when, why, what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.console.troubles import Away, Found, starts, trend_text, troubles_of
from penstock.core.status.history import History, Series, Trend, trend
from penstock.core.status.status import PartStatus, RunStatus

__all__ = ["Look", "keyed", "look_document", "measured"]

_LOST = {"skipped": "skipped_offsets_total", "dropped": "dropped_rows_total"}
_LATE = ("late_records_total", "ahead_records_total")
_KEEPS_UP_SECONDS = 5.0
_ENTERS = frozenset({"source", "gateway"})


@dataclass(frozen=True, slots=True)
class Look:
    """What there is at one moment."""

    at: float
    runs: Sequence[RunStatus]
    parts: Mapping[str, PartStatus]
    """All parts, by keys that stay while they run."""
    silent: Sequence[str] = ()
    """Runs that do not answer, in words."""
    broker: str = ""
    """How the log is, in words, where this process knows."""
    away: Away | None = None
    """Since when and why the log does not answer, where it does not."""
    latencies: Mapping[str, float] = field(default_factory=dict)
    """How long a record or batch of a part takes at the moment, in seconds."""

    @property
    def well(self) -> bool:
        """Whether something runs, and everything that does is well."""
        healthy = all(part.healthy for part in self.parts.values())
        return bool(self.parts) and not self.silent and self.away is None and healthy


def keyed(runs: Sequence[RunStatus], *, several: bool) -> dict[str, PartStatus]:
    """Return all parts by keys; where there may be several runs, these are in the keys."""
    return {
        f"{part.key}#{run.pid}" if several else part.key: part for run in runs for part in run.parts
    }


def measured(look: Look) -> dict[Series, float]:
    """Return the numbers of a look whose history is kept."""
    found: dict[Series, float] = {}
    for key, part in look.parts.items():
        found[Series(key, "in")] = part.rate_in
        found[Series(key, "out")] = part.rate_out
        found[Series(key, "dead")] = part.counts.dead_lettered
        if part.lag is not None:
            found[Series(key, "lag")] = part.lag
        if key in look.latencies:
            found[Series(key, "latency")] = look.latencies[key]
    totals = _totals(look)
    return found | {
        Series("", name): totals[name] for name in ("in", "out", "lag", "dead_lettered", "restarts")
    }


def look_document(look: Look, history: History) -> dict[str, Any]:
    """Return a look as JSON."""
    lags = {key: _going(look.at, key, part, history) for key, part in look.parts.items()}
    found = Found(
        at=look.at, parts=look.parts, lags=lags, history=history, silent=look.silent, away=look.away
    )
    troubles = list(troubles_of(found))
    mood = "bad" if troubles else "good" if look.well else "idle"
    return {
        "at": look.at,
        "well": look.well,
        "mood": mood,
        "summary": _summary(look),
        "broker": look.broker,
        "runs": [
            {
                "app": run.app,
                "command": run.command,
                "pid": run.pid,
                "started_at": run.started_at,
                "well": run.healthy,
            }
            for run in look.runs
        ],
        "troubles": troubles,
        "totals": _totals(look),
        "worst_lag": _worst(look, lags),
        "parts": [
            _part(key, part, look.latencies.get(key), lags[key]) for key, part in look.parts.items()
        ],
    }


def _summary(look: Look) -> str:
    if look.silent:
        return f"{len(look.silent)} run{'s do' if len(look.silent) > 1 else ' does'} not answer"
    if look.away is not None:
        return "the log does not answer"
    if not look.parts:
        return "nothing runs"
    unwell = sum(not part.healthy for part in look.parts.values())
    starting = sum(starts(part) for part in look.parts.values())
    if unwell:
        count, what = (starting, "starting") if starting == unwell else (unwell, "not well")
        return f"{count} of {len(look.parts)} parts {'are' if count > 1 else 'is'} {what}"
    return f"all {len(look.parts)} parts are well" if len(look.parts) > 1 else "its part is well"


def _part(key: str, part: PartStatus, latency: float | None, lag: Trend) -> dict[str, Any]:
    return {
        "key": key,
        "part": part.part,
        "process": part.process,
        "kind": part.kind,
        "state": part.state,
        "well": part.healthy,
        "since_seconds": part.since_seconds,
        "why": part.why,
        "restarts": part.restarts,
        "counts": part.counts,
        "balanced": part.counts.balanced,
        "rate_in": part.rate_in,
        "rate_out": part.rate_out,
        "lag": part.lag,
        "trend": _trend(lag),
        "latency_seconds": latency,
        "detail": part.detail,
    }


def _going(at: float, key: str, part: PartStatus, history: History) -> Trend:
    """Return where the lag of a part is going; one of a few seconds' input keeps up."""
    if part.lag is None:
        return Trend("unknown")
    found = trend([*history.lately(Series(key, "lag")), (at, float(part.lag))])
    keeps_up = 0 < part.lag <= part.rate_in * _KEEPS_UP_SECONDS
    return Trend("keeping up") if keeps_up and found.going != "unknown" else found


def _trend(found: Trend) -> dict[str, Any]:
    return {**found._asdict(), "text": trend_text(found)}


def _totals(look: Look) -> dict[str, Any]:
    parts = look.parts.values()
    return {
        "in": sum(part.rate_in for part in parts),
        "out": sum(part.rate_out for part in parts),
        "entering": sum(part.rate_out for part in parts if part.kind in _ENTERS),
        "received": sum(part.counts.received for part in parts),
        "written": sum(part.counts.written for part in parts),
        "in_flight": sum(part.counts.in_flight for part in parts),
        "filtered": sum(part.counts.filtered for part in parts),
        "lag": sum(part.lag or 0 for part in parts),
        "restarts": sum(part.restarts for part in parts),
        "dead_lettered": sum(part.counts.dead_lettered for part in parts),
        "late": sum(_metric(part, name) for part in parts for name in _LATE),
        "unaccounted": sum(_unaccounted(part) for part in parts),
    } | {word: sum(_metric(part, name) for part in parts) for word, name in _LOST.items()}


def _unaccounted(part: PartStatus) -> int:
    counts = part.counts
    known = counts.passed + counts.filtered + counts.dead_lettered + counts.in_flight
    return counts.received - known


def _metric(part: PartStatus, name: str) -> float:
    """Return a metric over all its labels."""
    return sum(
        value
        for each, value in part.metrics.items()
        if each == name or each.startswith(f"{name}{{")
    )


def _worst(look: Look, lags: Mapping[str, Trend]) -> dict[str, Any] | None:
    known = {key: part.lag for key, part in look.parts.items() if part.lag is not None}
    if not known:
        return None
    key = max(known, key=lambda name: known[name])
    return {"key": key, "lag": known[key], "trend": _trend(lags[key])}
