"""A setting of the application that the application learns: how many measurements have a sample.

Samples cost the scorer most, beside anomalies. If it falls behind, fewer are made; once it has
caught up, more again. The setting is a model like the others: versions on the same topic, refused
if they make no sense, taken over while everything runs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.anomaly.application import app, model_versions, samples
from apps.anomaly.records import Sample
from penstock import Context, State, feedback, record
from penstock.models import Models, ModelVersion, Served, sealed
from penstock.tables import Rows, broadcast

__all__ = ["MODEL", "ONE_IN", "Runtime", "Tune", "check", "one_in"]

MODEL = "runtime"
"""The name of the model among others."""
ONE_IN = 10
"""So many measurements of a device have one sample, as long as nobody says otherwise."""
MOST = 80
BEHIND, CAUGHT_UP = 10.0, 4.0
"""Seconds from a measurement to its sample: from here on it is behind; below that, not any more.

A way of two seconds is ordinary: clocks that are off by less are left alone.
"""
FOLLOWS = 0.05
"""How much of a new lag is in what is known of it."""
RESTS = timedelta(minutes=1)
"""After a change the next one waits for so long: it must have had an effect."""


@record()
class Runtime:
    """What the scorer goes by."""

    one_in: int


@record()
class Watched:
    """The lag of late, and the last change."""

    lag: float = 0.0
    version: int = 0
    changed_at: datetime | None = None


def check(runtime: Runtime) -> None:
    """Raise a ValueError for a setting that makes no sense."""
    if not 1 <= runtime.one_in <= MOST:
        raise ValueError(f"one sample in {runtime.one_in}: 1 to {MOST} are possible")


def one_in(served: Served[Runtime] | None) -> int:
    """Return how many measurements have one sample."""
    return ONE_IN if served is None else served.parameters.one_in


@app.service(
    reads=(samples, broadcast(model_versions)), writes=feedback(model_versions), name="tune"
)
class Tune:
    """Watches how far samples are behind, and says how many there are to be."""

    def __init__(self) -> None:
        self.models = Models(MODEL, Runtime, check=check)

    def process(
        self, sample: Sample, watched: State[Watched], rows: Rows[ModelVersion], context: Context
    ) -> ModelVersion | None:
        """Take note of a sample's lag; double or halve the number, if it is time to."""
        past, now = watched.get(Watched()), context.now_at
        lag = past.lag + FOLLOWS * ((now - sample.at).total_seconds() - past.lag)
        before = one_in(served := self.models.newest(rows))
        number = max(past.version, 0 if served is None else served.version)
        rests = past.changed_at is not None and now - past.changed_at < RESTS
        after = before
        if lag > BEHIND:
            after = min(before * 2, MOST)
        elif lag < CAUGHT_UP:
            after = max(before // 2, ONE_IN)
        if rests or after == before or (served is not None and served.version < past.version):
            watched.set(Watched(lag, past.version, changed_at=past.changed_at))
            return None
        watched.set(Watched(lag, number + 1, changed_at=now))
        return sealed(
            MODEL,
            number + 1,
            Runtime(after),
            trained_on=f"samples that came {lag:.0f} s after their measurement",
            figures={"lag": round(lag, 3)},
            published_at=now,
        )
