"""What is wrong, the worst first: since when, why, and what to do about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.status.history import History, Series, Trend
from penstock.core.status.status import PartStatus
from penstock.core.units import span_text

__all__ = ["Away", "Found", "starts", "trend_text", "troubles_of"]

_ADVICE = {
    "starting": "it takes long to start: its log says what it is doing",
    "restarting": "it starts again by itself; its log says why it died",
    "failed": "its log says why; mend that, and start the run again."
    " Nothing is lost: it goes on where it was",
}
_STARTING_SECONDS = 60.0
"""Until then, a part that starts for the first time is no trouble."""
_BEHIND_SECONDS = 30.0
"""A lag that grows is trouble where handling it takes longer than this."""
_MANY_LETTERS = 0.05
"""Dead letters are trouble where they are a larger part than this of what came lately."""
_LEAST_LETTERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """The log does not answer: for how long, where it should be, and what to do."""

    seconds: float
    why: str
    do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is at one moment, as far as it may be trouble."""

    at: float
    parts: Mapping[str, PartStatus]
    lags: Mapping[str, Trend]
    history: History
    silent: Sequence[str] = field(default=())
    away: Away | None = None


def troubles_of(look: Found) -> Iterator[dict[str, Any]]:
    """Yield what is wrong, the worst first, with what to do about it."""
    if look.away is not None:
        yield {
            "key": "",
            "process": "",
            "what": "the log does not answer",
            "state": "failed",
            "since_seconds": look.away.seconds,
            "why": look.away.why,
            "do": look.away.do,
        }
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
        (key, part) for key, part in look.parts.items() if not part.healthy and not starts(part)
    ]
    for key, part in sorted(unwell, key=lambda each: order.get(each[1].state, 3)):
        yield {
            "key": key,
            "process": part.process,
            "what": _what(part),
            "state": part.state,
            "since_seconds": part.since_seconds,
            "why": part.why,
            "do": _waits(part) if look.away is not None else _advice(part),
        }
    yield from _letters(look)
    yield from _behind(look)


def _letters(look: Found) -> Iterator[dict[str, Any]]:
    """Yield the parts that give up many of the records that have come lately."""
    for key, part in look.parts.items():
        before = look.history.lately(Series(key, "dead"))
        rates = [rate for _, rate in look.history.lately(Series(key, "in"))]
        if not before or not rates:
            continue
        (first_at, first), seconds = before[0], look.at - before[0][0]
        count = part.counts.dead_lettered - first
        came = max(count, seconds * sum(rates) / len(rates))
        if first_at < look.at and count >= _LEAST_LETTERS and count > came * _MANY_LETTERS:
            last = part.detail.get("last dead letter", "")
            yield {
                "key": key,
                "process": "",
                "what": f"{part.part} gives up {count / came:.0%} of its records",
                "state": "letters",
                "since_seconds": None,
                "why": f"{count:,.0f} dead letters in {span_text(seconds)}"
                + (f", the last one: {last}" if last else ""),
                "do": "nothing of them is lost: see the reasons under dead letters, mend the cause,"
                " then give them back",
            }


def _behind(look: Found) -> Iterator[dict[str, Any]]:
    for key, part in look.parts.items():
        far = (part.lag or 0) > part.rate_in * _BEHIND_SECONDS
        far = far and part.since_seconds > _BEHIND_SECONDS  # else it may be catching up
        if part.healthy and look.lags[key].going == "growing" and far:
            yield {
                "key": key,
                "process": "",
                "what": f"{part.part} falls behind",
                "state": "behind",
                "since_seconds": None,
                "why": f"its lag is {part.lag:,} and {trend_text(look.lags[key])}",
                "do": "see whether one partition of it is hot; if not, run more workers of it",
            }


def _waits(part: PartStatus) -> str:
    """Return what to do about a part while the log is away."""
    if part.state == "degraded":
        return "nothing for this part: it waits for the log, and goes on by itself"
    return _advice(part)


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


def trend_text(found: Trend) -> str:
    """Return where a lag is going, in words: ``empty in about 4m``."""
    if found.going == "growing":
        return f"growing by {found.per_second:,.0f}/s" if found.per_second >= 1 else "growing"
    if found.going == "falling" and found.seconds_left is not None:
        return f"empty in about {span_text(found.seconds_left)}"
    words = {"empty": "caught up", "steady": "steady", "keeping up": "keeps up"}
    return words.get(found.going, "")


def starts(part: PartStatus) -> bool:
    """Return whether a part is on its way, as it should be."""
    waits = part.since_seconds < _STARTING_SECONDS or "restoring" in part.detail
    return part.state == "starting" and part.restarts == 0 and waits
