"""One look at everything that runs: what is well, what is not, since when, why, what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.status.history import History, Series, Trend, trend
from penstock.core.status.status import PartStatus, RunStatus
from penstock.core.units import span_text

__all__ = ["Look", "keyed", "look_document", "measured", "trend_text"]

_LOST = {"skipped": "skipped_offsets_total", "dropped": "dropped_rows_total"}
_LATE = ("late_records_total", "ahead_records_total")
_ADVICE = {
    "starting": "it takes long to start: its log says what it is doing",
    "restarting": "it starts again by itself; its log says why it died",
    "failed": "its log says why; nothing is lost: when it runs again, it goes on where it was",
}
_STARTING_SECONDS = 60.0
"""Until then, a part that starts for the first time is no trouble."""
_KEEPS_UP_SECONDS = 5.0
_BEHIND_SECONDS = 30.0
"""A lag that grows is trouble where handling it takes longer than this."""
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
    latencies: Mapping[str, float] = field(default_factory=dict)
    """How long a record or batch of a part takes at the moment, in seconds."""

    @property
    def well(self) -> bool:
        """Whether something runs, and everything that does is well."""
        return bool(self.parts) and not self.silent and all(p.healthy for p in self.parts.values())


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
    troubles = list(_troubles(look, lags))
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
    if not look.parts:
        return "nothing runs"
    unwell = sum(not part.healthy for part in look.parts.values())
    starting = sum(_starts(part) for part in look.parts.values())
    if unwell:
        count, what = (starting, "starting") if starting == unwell else (unwell, "not well")
        return f"{count} of {len(look.parts)} parts {'are' if count > 1 else 'is'} {what}"
    return f"all {len(look.parts)} parts are well" if len(look.parts) > 1 else "its part is well"


def _starts(part: PartStatus) -> bool:
    """Return whether a part is on its way, as it should be."""
    waits = part.since_seconds < _STARTING_SECONDS or "restoring" in part.detail
    return part.state == "starting" and part.restarts == 0 and waits


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


def trend_text(found: Trend) -> str:
    """Return where a lag is going, in words: ``empty in about 4m``."""
    if found.going == "growing":
        return f"growing by {found.per_second:,.0f}/s" if found.per_second >= 1 else "growing"
    if found.going == "falling" and found.seconds_left is not None:
        return f"empty in about {span_text(found.seconds_left)}"
    words = {"empty": "caught up", "steady": "steady", "keeping up": "keeps up"}
    return words.get(found.going, "")


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


def _troubles(look: Look, lags: Mapping[str, Trend]) -> Iterator[dict[str, Any]]:
    """Yield what is wrong, the worst first, with what to do about it."""
    for text in look.silent:
        yield {
            "key": "",
            "process": "",
            "what": text,
            "state": "silent",
            "since_seconds": None,
            "why": "",
            "do": "see whether its process lives, and what else keeps the machine busy",
        }
    order = {"failed": 0, "restarting": 1, "degraded": 2}
    unwell = [
        (key, part) for key, part in look.parts.items() if not part.healthy and not _starts(part)
    ]
    for key, part in sorted(unwell, key=lambda each: order.get(each[1].state, 3)):
        yield {
            "key": key,
            "process": part.process,
            "what": _what(part),
            "state": part.state,
            "since_seconds": part.since_seconds,
            "why": part.why,
            "do": _advice(part),
        }
    for key, part in look.parts.items():
        far = (part.lag or 0) > part.rate_in * _BEHIND_SECONDS
        far = far and part.since_seconds > _BEHIND_SECONDS  # else it may be catching up
        if part.healthy and lags[key].going == "growing" and far:
            yield {
                "key": key,
                "process": "",
                "what": f"{part.part} falls behind",
                "state": "behind",
                "since_seconds": None,
                "why": f"its lag is {part.lag:,} and {trend_text(lags[key])}",
                "do": "see whether one partition of it is hot; if not, run more workers of it",
            }


def _what(part: PartStatus) -> str:
    again = part.state == "starting" and part.restarts > 0
    return f"{part.part} starts again" if again else f"{part.part} is {part.state}"


def _advice(part: PartStatus) -> str:
    """Return what to do about a part that is not well."""
    if "restoring" in part.detail and part.state == "starting":
        return "wait: its state comes back from its changelog"
    if part.state == "starting" and part.restarts > 0:
        return _ADVICE["restarting"]
    if "has not reported" in part.reason:
        return "its process may be stuck: see its log; killed it starts again, and loses nothing"
    if part.state == "degraded" and "retrying" in part.detail:
        return "a record fails again and again: its facts say which one, its log why"
    return _ADVICE.get(part.state, "the reason says what it lacks; its log has more")
