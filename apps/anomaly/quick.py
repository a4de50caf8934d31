"""The usual case, compiled: a device that has measured what it always does.

``Trend`` says what a measurement means, and ``score`` how unusual that is. For each version of a
model, and each set of metrics that a kind of device has, this makes straight code of both, from the
past as bytes to the past as bytes. Of the score it only says whether it is 0 for certain. Whatever
is not usual is left to the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from apps.anomaly.scoring import Ordinary, TelemetryModel
from apps.anomaly.trend import (
    EARLIEST,
    FADES,
    FAST,
    LARGEST,
    MOST_STILL,
    SETTLED,
    SLOW,
    WARNINGS,
    shape_of,
)

__all__ = ["Quick"]

MOST_COMPILED = 256
"""So many kinds with their metrics are compiled for a version; others are not quick."""

After = tuple[bytes, bool]
Step = Callable[[bytes, int, Mapping[str, float]], After | None]
"""From a past, the start of the device and metrics to the past after them, and whether the score is
0 for certain; None: it is not the usual case."""

_BEGIN = """
def step(packed, started, metrics):
    if not packed.startswith(HEAD):
        return None
    before, count, warnings, {past} = unpack(packed, {start})
    {values}, = metrics.values()
    if before != started:
        return None
    if count < {SETTLED}:
        count += 1
        slow = 1 / count
    else:
        slow = {SLOW}
    warnings *= {FADES}
    ordinary = count >= {EARLIEST} and {least} <= warnings <= {most}
"""
_METRIC = """
    if not -{LARGEST} <= v{n} <= {LARGEST}:
        return None
    s{n} += {FAST} * (v{n} - s{n})
    l{n} += slow * (v{n} - l{n})
    if v{n} != a{n}:
        k{n} = 0.0
    elif k{n} < {MOST_STILL}:
        k{n} += 1.0
    if not (
        {level.low!r} <= s{n} <= {level.high!r}
        and {shift.low!r} <= s{n} - l{n} <= {shift.high!r}
        and {still.low!r} <= k{n} <= {still.high!r}
    ):
        ordinary = False
"""
_END = """
    return HEAD + pack(started, count, warnings, {now}), ordinary
"""
_NUMBERS: Final = {
    name: repr(value)
    for name, value in {
        "FADES": FADES,
        "EARLIEST": EARLIEST,
        "FAST": FAST,
        "SLOW": SLOW,
        "SETTLED": SETTLED,
        "MOST_STILL": MOST_STILL,
        "LARGEST": LARGEST,
    }.items()
}


class Quick:
    """What is usual for the devices of one version of a model."""

    def __init__(self, model: TelemetryModel) -> None:
        self._model = model
        self._steps: dict[tuple[str, ...], Step | None] = {}

    def after(
        self, kind: str, packed: bytes, started: int, metrics: Mapping[str, float]
    ) -> After | None:
        """Return the packed past after one more measurement, and whether its score is 0.

        It may be 0 also where this says no. None: it is not the usual case.
        """
        key = (kind, *metrics)
        step = self._steps.get(key)
        if step is None and key not in self._steps:
            step = self._compiled(key)
        return None if step is None else step(packed, started, metrics)

    def _compiled(self, key: tuple[str, ...]) -> Step | None:
        if len(self._steps) >= MOST_COMPILED:
            return None
        kind, *names = key
        known = self._model.kinds.get(kind, {})
        whole = names and all(f"{name}.{of}" in known for name in names for of in OF)
        step = self._steps[key] = _compile(tuple(names), known) if whole else None
        return step


OF = ("level", "shift", "still")


def _compile(names: tuple[str, ...], known: Mapping[str, Ordinary]) -> Step:
    """Return the code for a device with these metrics; all that goes into its text is numbers."""
    shape, places = shape_of(names), range(len(names))
    columns = {letter: ", ".join(f"{letter}{n}" for n in places) for letter in "slvak"}
    warnings = known.get(WARNINGS)
    text = _BEGIN.format(
        past=", ".join(columns[letter] for letter in "slak"),
        values=columns["v"],
        start=len(shape.head),
        least=0.0 if warnings is None else repr(warnings.low),
        most="1e999" if warnings is None else repr(warnings.high),
        **_NUMBERS,
    )
    for n, name in enumerate(names):
        level, shift, still = (known[f"{name}.{of}"] for of in OF)
        text += _METRIC.format(n=n, level=level, shift=shift, still=still, **_NUMBERS)
    text += _END.format(now=", ".join(columns[letter] for letter in "slvk"))
    scope: dict[str, Any] = {
        "HEAD": shape.head,
        "pack": shape.numbers.pack,
        "unpack": shape.numbers.unpack_from,
    }
    exec(compile(text, f"<quick {len(names)} metrics>", "exec"), scope)  # noqa: S102
    step: Step = scope["step"]
    return step
