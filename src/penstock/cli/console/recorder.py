"""Looks at what runs once a second, and remembers: an hour of numbers, and what happened."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from penstock.cli.console.look import Look, look_document, measured
from penstock.core.status.exposition import CATALOGUE, nested
from penstock.core.status.history import EVERY_SECONDS, KEPT, History
from penstock.core.status.status import PartStatus
from penstock.core.status.timeline import Happening, Timeline
from penstock.errors import ConfigurationError

__all__ = ["LOOK_SECONDS", "Recorder"]

LOOK_SECONDS = 1.0
_JOIN_SECONDS = 5.0
_MOST_NUMBERS = 60_000
"""So many numbers of the history are sent at most; of more, every second or third is left out."""
_DIGITS = 4
_LATENCIES = ("end_to_end_seconds", "batch_seconds")


class Recorder:
    """Looks in a thread of its own while the block runs. It may be asked from any thread."""

    def __init__(self, look: Callable[[], Look], *, clock: Callable[[], float] = time.time) -> None:
        self._look_at = look
        self._clock = clock
        self._changed = threading.Condition()
        self._history = History()
        self._timeline = Timeline()
        self._durations: dict[str, tuple[float, float]] = {}
        self._latencies: dict[str, float] = {}
        self._parts: Mapping[str, PartStatus] = {}
        self._sampled_at = -EVERY_SECONDS
        self._number = 0
        self._document: dict[str, Any] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def __enter__(self) -> Self:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def tell(self, text: str) -> None:
        """Take note of something that happened to the whole."""
        with self._changed:
            self._timeline.tell(self._clock(), text)

    def look(self) -> None:
        """Look once."""
        look = self._look_at()
        with self._changed:
            # A clock that was put back begins anew.
            if not 0 <= look.at - self._sampled_at < EVERY_SECONDS:
                self._sampled_at = look.at
                self._latencies = {
                    key: latency
                    for key, part in look.parts.items()
                    if (latency := self._latency(key, part)) is not None
                }
            self._parts = look.parts
            look = replace(look, latencies=self._latencies)
            if self._sampled_at == look.at:
                self._history.take(look.at, measured(look))
            self._timeline.take(look.at, look.runs, look.parts)
            self._document = look_document(look, self._history)
            self._number += 1
            self._changed.notify_all()

    def now(self) -> dict[str, Any]:
        """Return the last look."""
        with self._changed:
            return self._document

    def metrics(self, key: str) -> dict[str, Any]:
        """Return all metrics of a part, nested by the values of their labels."""
        with self._changed:
            part = self._parts.get(key)
        if part is None:
            raise ConfigurationError(f"{key!r} does not run here", code="part.missing")
        return {"key": key, "metrics": nested(part.metrics), "about": _about(part.metrics)}

    def total(self, part: str, name: str) -> float | None:
        """Return a metric of a part over all its processes; None: none of them has told it."""
        with self._changed:
            parts = [each for each in self._parts.values() if each.part == part]
        found = [each.metrics[name] for each in parts if name in each.metrics]
        return sum(found) if found else None

    def next(self, number: int, *, seconds: float) -> tuple[int, dict[str, Any]]:
        """Wait for a look after the one of this number; return the last one, with its number."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > number, seconds)
            return self._number, self._document

    def happened(self, after: int = 0) -> list[Happening]:
        """Return what happened after the happening of this number, the oldest first."""
        with self._changed:
            return self._timeline.after(after)

    def history(self, *, after: float = 0.0) -> dict[str, Any]:
        """Return the numbers of the last hour as columns, by part and by what they say."""
        with self._changed:
            names, times = self._history.names, self._history.times()
            stride = max(1, -(-len(names) * KEPT // _MOST_NUMBERS))
            chosen = [
                place
                for place in range(len(times))
                if (len(times) - 1 - place) % stride == 0 and times[place] > after
            ]
            series: dict[str, dict[str, list[float | None]]] = {}
            # Every page asks every second, and mostly there is nothing new.
            first = chosen[0] if chosen else len(times)
            for name in names if chosen else ():
                values = self._history.values(name, last=len(times) - first)
                column = [_short(values[place - first]) for place in chosen]
                series.setdefault(name.whose, {})[name.what] = column
        return {
            "at": [round(times[place], 1) for place in chosen],
            "every_seconds": EVERY_SECONDS * stride,
            "series": series,
        }

    def _latency(self, key: str, part: PartStatus) -> float | None:
        """Return how long a record or batch took since the last sample."""
        for name in _LATENCIES:
            count, total = part.metrics.get(f"{name}_count"), part.metrics.get(f"{name}_sum")
            if count is None or total is None:
                continue
            old_count, old_total = self._durations.get(key, (0.0, 0.0))
            self._durations[key] = (count, total)
            if count > old_count and total >= old_total:
                return (total - old_total) / (count - old_count)
            return None
        return None

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.look()


def _about(metrics: Mapping[str, float]) -> dict[str, str]:
    """Return what each metric says, by its name."""
    names = {each.partition("{")[0] for each in metrics}
    whole = {re.sub("_(bucket|sum|count)$", "", name) for name in names}
    return {name: CATALOGUE[name] for name in sorted(names | whole) if name in CATALOGUE}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")
