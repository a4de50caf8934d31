"""Read the form of the pane cases, as the head of ``panes.json`` describes it.

Whatever is not in that form is refused with the word that was not understood: a case that is run
without one of its words would pass or fail for a wrong reason.
"""

from collections.abc import Iterator
from typing import Any

from penstock.core.panes.machine import Windowing
from penstock.core.panes.times import BEGINNING, END
from penstock.core.panes.triggers import (
    DEFAULT,
    AfterCount,
    AfterDelay,
    AfterWatermark,
    AllOf,
    AnyOf,
    InOrder,
    Never,
    Repeat,
    Trigger,
    Until,
)
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
    WindowKind,
)

__all__ = [
    "Case",
    "Step",
    "batches",
    "bundlings",
    "streams",
    "time_of",
    "understood",
    "windowing_of",
]

Case = dict[str, Any]
Step = dict[str, Any]

_STEPS = {"in", "watermark", "clock", "panes", "dropped"}
_WORDS = {
    "case": {
        *("id", "window", "trigger", "mode", "lateness", "stamp", "final_pane", "on_time_pane"),
        *("steps", "other_stream"),
    },
    "step": _STEPS | {"bundle"},
    "pane": {
        *("window", "values", "sum", "stamp", "timing", "index", "on_time_index"),
        *("first", "last", "retract", "key"),
    },
}
_SEVERAL = {"any": AnyOf, "all": AllOf, "each": InOrder}


def understood(case: Case) -> Case:
    """Return a case without its remarks: texts under words that are not in the form.

    Any other word that is not in the form is refused.
    """
    known = _words("case", case)
    for name in ("steps", "other_stream"):
        if name in known:
            known[name] = [_step(step) for step in known[name]]
    return known


def _step(step: Step) -> Step:
    known = _words("step", step)
    if not known.keys() & _STEPS:
        raise ValueError(f"no such step: {step}")
    if "panes" in known:
        known["panes"] = [_words("pane", pane) for pane in known["panes"]]
    return known


def _words(what: str, given: dict[str, Any]) -> dict[str, Any]:
    for word, value in given.items():
        if word not in _WORDS[what] and not isinstance(value, str):
            raise ValueError(f"no such word in a {what}: {word}")
    return {word: value for word, value in given.items() if word in _WORDS[what]}


def streams(case: Case) -> list[list[Step]]:
    """Return the steps of each stream of a case."""
    return [case["steps"], *([case["other_stream"]] if "other_stream" in case else [])]


def windowing_of(case: Case) -> Windowing:
    """Return what a case declares; what it leaves out is as the form says."""
    return Windowing(
        windows=_windows(case.get("window")),
        trigger=_trigger(case.get("trigger", "default")),
        mode=_word(case, "mode", "accumulating", "discarding", "retracting"),
        lateness=time_of(case.get("lateness", 0)),
        stamp=_word(case, "stamp", "end", "earliest", "latest"),
        final_pane=_word(case, "final_pane", "if_new", "always"),
        on_time_pane=_word(case, "on_time_pane", "always", "if_new"),
    )


def time_of(value: Any) -> int:
    """Return a time or a span; 'inf' and '-inf' are the ends of time."""
    if isinstance(value, str):
        value = {"inf": END, "-inf": BEGINNING}.get(value, value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"no time: {value!r}")  # noqa: TRY004 - all of the form's errors are one
    return value


def bundlings(case: Case) -> list[int | None]:
    """Return every bundle size that the case lists; all must give the same panes."""
    sizes = [size for steps in streams(case) for step in steps for size in step.get("bundle", ())]
    return list(dict.fromkeys(sizes)) or [None]


def batches(step: Step, size: int | None) -> Iterator[list[tuple[int, Any, Any]]]:
    """Yield the elements of a step as they are fed: time, value, key."""
    elements = [_element(each) for each in step["in"]]
    listed = step.get("bundle")
    if size is None or not listed:
        yield elements
        return
    chosen = size if size in listed else listed[0]
    if chosen < 0:
        elements.reverse()
    for start in range(0, len(elements), abs(chosen)):
        yield elements[start : start + abs(chosen)]


def _element(given: Any) -> tuple[int, Any, Any]:
    match given:
        case [time, value]:
            return time_of(time), value, None
        case [time, value, key]:
            return time_of(time), value, key
    raise ValueError(f"no element: {given!r}")


def _word(case: Case, name: str, *words: str) -> Any:
    """Return one of the words; the first is the default."""
    if (word := case.get(name, words[0])) not in words:
        raise ValueError(f"no such {name}: {word!r}")
    return word


def _windows(spec: Any) -> WindowKind:
    match {"kind": spec} if isinstance(spec, str) else spec:
        case {"kind": "fixed", "size": size, **rest} if not rest.keys() - {"offset"}:
            return FixedWindows(size, rest.get("offset", 0))
        case {"kind": "sliding", "size": size, "period": period, **rest} if not rest.keys() - {
            "offset"
        }:
            return SlidingWindows(size, period, rest.get("offset", 0))
        case {"kind": "sessions", "gap": gap, **rest} if not rest:
            return SessionWindows(gap)
        case {"kind": "count", "size": size, **rest} if not rest:
            return CountWindows(size)
        case {"kind": "global", **rest} if not rest:
            return GlobalWindow()
    raise ValueError(f"no such window: {spec}")


def _trigger(spec: Any) -> Trigger:
    named = {spec: {}} if isinstance(spec, str) else spec
    if not isinstance(named, dict) or len(named) != 1:
        raise ValueError(f"no such trigger: {spec}")
    match next(iter(named.items())):
        case ("default" | "never") as name, _:
            return DEFAULT if name == "default" else Never()
        case ("count" | "delay") as name, int(number):
            return AfterCount(number) if name == "count" else AfterDelay(number)
        case "repeat", inner:
            return Repeat(_trigger(inner))
        case "until", [actual, end]:
            return Until((_trigger(actual), _trigger(end)))
        case "watermark", (dict() | None) as parts:
            return _watermark(parts or {})
        case ("any" | "all" | "each") as name, [*inner]:
            return _SEVERAL[name](tuple(_trigger(each) for each in inner))
    raise ValueError(f"no such trigger: {spec}")


def _watermark(parts: dict[str, Any]) -> AfterWatermark:
    if unknown := parts.keys() - {"early", "late"}:
        raise ValueError(f"no such part of a watermark trigger: {', '.join(sorted(unknown))}")
    inner = {when: _trigger(spec) for when, spec in parts.items() if spec is not None}
    return AfterWatermark(inner.get("early"), inner.get("late"))
