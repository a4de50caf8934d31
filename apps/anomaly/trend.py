"""The recent past of one device, and what a measurement means after it: pure.

Every measurement of every device moves it, so it is small: columns of numbers, one row for each
metric, which ``packed`` makes bytes of. The names of the metrics, which most devices of a kind
share, are looked up. ``quick`` does the same for measurements that are ordinary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import nan
from struct import Struct

import msgspec

__all__ = ["MOST_METRICS", "MOST_STILL", "WARNINGS", "Shape", "Trend", "shape_of"]

FAST, SLOW, FADES = 0.2, 0.01, 0.9
"""How much of a new value is in the short mean and in the long one; what is left of a count."""
EARLIEST = 5
"""A device that has just started is not scored before so many measurements."""
SETTLED = 100
"""Until so many the long mean is that of all; after them older ones fade."""
MOST_STILL = 30.0
"""Equal values in a row are counted up to here."""
MOST_METRICS = 64
"""So many metrics of a device are remembered, and scored."""
LARGEST = 1e150
"""A value that is further from 0 counts as this one: so all that is made of it is finite."""
WARNINGS = "log.warnings"
"""The feature that counts log lines, older ones less..."""
WARNING = ("error", "warning")
"""... that begin so."""
MOST_SHAPES, MOST_HEAD = 1_000, 4_000
"""So many sets of metrics are kept for the next device, if their names are no longer than that."""
_LONG = (1 << 63) - 1

Column = Sequence[float]


class Shape:
    """The metrics of a device in their order, and how its numbers lie in bytes."""

    __slots__ = ("features", "head", "names", "numbers")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.head = msgspec.json.encode(names) + b"\n"
        self.numbers = Struct(f"<qbd{4 * len(names)}d")
        self.features = {
            name: [f"{name}.{of}" for of in ("level", "shift", "still")] for name in names
        }


class _Shapes(dict[bytes | tuple[str, ...], Shape]):
    """Shapes by their names, or by these as JSON."""

    def __missing__(self, names: bytes | tuple[str, ...]) -> Shape:
        shape = Shape(tuple(msgspec.json.decode(names)) if isinstance(names, bytes) else names)
        if len(shape.head) <= MOST_HEAD:
            if len(self) >= MOST_SHAPES:
                self.clear()
            self[names] = shape
        return shape


_shapes = _Shapes()


def shape_of(names: tuple[str, ...]) -> Shape:
    """Return the shape of a device with these metrics."""
    return _shapes[names]


class Trend:
    """The recent past of one device; bounded, whatever comes. It is replaced, and never changed.

    ``shorts`` and ``longs`` are the short and long means of its metrics, ``lasts`` their last
    values, and ``stills`` how many equal values came in a row.
    """

    __slots__ = ("count", "lasts", "longs", "shape", "shorts", "started", "stills", "warnings")

    shape: Shape
    shorts: Column
    longs: Column
    lasts: Column
    stills: Column
    started: int
    """When the device started: what was before does not count."""
    count: int
    """How many measurements there were, up to `SETTLED`."""
    warnings: float
    """Log lines that warn, older ones counted less."""

    def __init__(self, started: int = 0) -> None:
        self.shape = _shapes[()]
        self.shorts = self.longs = self.lasts = self.stills = ()
        self.started, self.count, self.warnings = started & _LONG, 0, 0.0

    @staticmethod
    def opened(packed: bytes) -> Trend:
        """Return the trend that was packed."""
        head, _, _ = packed.partition(b"\n")
        found = _trend(Trend)
        shape = found.shape = _shapes[head]
        found.started, found.count, found.warnings, *rest = shape.numbers.unpack_from(
            packed, len(shape.head)
        )
        many = len(shape.names)
        found.shorts, found.longs = rest[:many], rest[many : 2 * many]
        found.lasts, found.stills = rest[2 * many : 3 * many], rest[3 * many :]
        return found

    def packed(self) -> bytes:
        """Return the trend as bytes, which take 32 for each metric, and its name."""
        return self.shape.head + self.shape.numbers.pack(
            self.started,
            self.count,
            self.warnings,
            *self.shorts,
            *self.longs,
            *self.lasts,
            *self.stills,
        )

    @property
    def long_enough(self) -> bool:
        """Whether there is enough of a past to score."""
        return self.count >= EARLIEST

    def of(self, started: int) -> Trend:
        """Return this past, or an empty one if the device has started anew."""
        return self if started & _LONG == self.started else Trend(started)

    def after(self, metrics: Mapping[str, float], log: Iterable[str] = ()) -> Trend:
        """Return the past with one more measurement."""
        found = _trend(Trend)
        if tuple(metrics) == self.shape.names:
            shape, columns = self.shape, self._columns
            columns = _moved(metrics.values(), *columns, slow=_slow(self.count))
        else:
            shape, columns = self._mixed(metrics)
        found.shape = shape
        found.shorts, found.longs, found.lasts, found.stills = columns
        lines = sum(line.startswith(WARNING) for line in log) if log else 0
        found.warnings = FADES * self.warnings + lines
        found.started, found.count = self.started, min(self.count + 1, SETTLED)
        return found

    def features(self, metrics: Iterable[str]) -> dict[str, float]:
        """Return what the measurement means that came last and had these metrics.

        Of each metric: ``level``, its short mean; ``shift``, how far that is from its long mean;
        ``still``, how many equal values came in a row.
        """
        found: dict[str, float] = {}
        names = self.shape.features
        rows = dict(zip(names, zip(self.shorts, self.longs, self.stills, strict=True), strict=True))
        for metric in metrics:
            if (row := rows.get(metric)) is not None:
                short, long, still = row
                level, shift, same = names[metric]
                found[level], found[shift], found[same] = short, short - long, still
        found[WARNINGS] = self.warnings
        return found

    @property
    def _columns(self) -> Sequence[Column]:
        return self.shorts, self.longs, self.lasts, self.stills

    def _mixed(self, metrics: Mapping[str, float]) -> tuple[Shape, Sequence[Column]]:
        """Return shape and columns where a metric is new, or missing: its past stays as it is."""
        rows = dict(zip(self.shape.names, zip(*self._columns, strict=True), strict=True))
        for name, value in metrics.items():
            if name not in rows and len(rows) < MOST_METRICS:
                first = _bounded(value)
                rows[name] = (first, first, nan, 0.0)
        here = [name for name in metrics if name in rows]
        if here:
            past = zip(*(rows[name] for name in here), strict=True)
            values = [metrics[name] for name in here]
            moved = _moved(values, *past, slow=_slow(self.count))
            rows |= zip(here, zip(*moved, strict=True), strict=True)
        return _shapes[tuple(rows)], list(zip(*rows.values(), strict=True)) or [()] * 4


def _moved(
    values: Collection[float],
    shorts: Column,
    longs: Column,
    lasts: Column,
    stills: Column,
    *,
    slow: float,
) -> Sequence[Column]:
    """Return the columns after one more value of each metric."""
    moved: tuple[list[float], ...] = ([], [], [], [])
    to_shorts, to_longs, to_lasts, to_stills = moved
    for value, short, long, last, still in zip(values, shorts, longs, lasts, stills, strict=True):
        if not -LARGEST <= value <= LARGEST:
            value = _bounded(value)  # noqa: PLW2901
        to_shorts.append(short + FAST * (value - short))
        to_longs.append(long + slow * (value - long))
        to_lasts.append(value)
        to_stills.append(0.0 if value != last else still + 1 if still < MOST_STILL else still)
    return moved


def _slow(count: int) -> float:
    """Return how much of a new value is in the long mean, after so many measurements."""
    return SLOW if count >= SETTLED else 1 / (count + 1)


def _bounded(value: float) -> float:
    return max(min(LARGEST, value), -LARGEST)  # in this order it takes no number for the largest


_trend = Trend.__new__
