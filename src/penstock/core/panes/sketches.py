"""Aggregates with an approximate answer in bounded space, each with its stated error."""

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

__all__ = ["ApproximateDistinct", "Quantile"]

_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class ApproximateDistinct:
    """About how many different values there are: HyperLogLog, 2 % off at one standard error."""

    bits: int = 12

    def zero(self) -> dict[int, int]:
        """Return an empty accumulator: register to longest run of zeros, plus one."""
        return {}

    def add(self, held: dict[int, int], value: Any) -> dict[int, int]:
        """Note a value."""
        if value is None:
            return held
        digest = blake2b(_ENCODER.encode(value), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        register, rest = number >> (64 - self.bits), number & ((1 << (64 - self.bits)) - 1)
        run = 64 - self.bits - rest.bit_length() + 1
        if run > held.get(register, 0):
            held[register] = run
        return held

    def merge(self, held: dict[int, int], other: dict[int, int]) -> dict[int, int]:
        """Keep the longer run of each register."""
        merged = dict(held)
        for register, run in other.items():
            merged[register] = max(run, merged.get(register, 0))
        return merged

    def result(self, held: dict[int, int]) -> int:
        """Return the estimate."""
        registers = 1 << self.bits
        empty = registers - len(held)
        weight = empty + sum(2.0**-run for run in held.values())
        estimate = 0.7213 / (1 + 1.079 / registers) * registers**2 / weight
        if estimate <= 2.5 * registers and empty:
            estimate = registers * math.log(registers / empty)
        return round(estimate)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A value with this share of all values below it, within ``error`` of it, relatively.

    A DDSketch: values are counted in buckets whose bounds grow by a constant factor. NaN is left
    out; values nearer to zero than 1e-9 count as zero.
    """

    share: float
    error: float = 0.01

    def zero(self) -> list[dict[int, int]]:
        """Return an empty accumulator: buckets below zero, at zero and above it."""
        return [{}, {}, {}]

    def add(self, held: list[dict[int, int]], value: Any) -> list[dict[int, int]]:
        """Count a value."""
        if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
            return held
        size = abs(value)
        if size < _ALMOST_ZERO:
            side, bucket = 1, 0
        else:
            side = 2 if value > 0 else 0
            bucket = math.ceil(math.log(min(size, _LARGEST)) / self._step)
        held[side][bucket] = held[side].get(bucket, 0) + 1
        return held

    def merge(
        self, held: list[dict[int, int]], other: list[dict[int, int]]
    ) -> list[dict[int, int]]:
        """Add up both."""
        merged = [dict(side) for side in held]
        for side, more in zip(merged, other, strict=True):
            for bucket, count in more.items():
                side[bucket] = side.get(bucket, 0) + count
        return merged

    def result(self, held: list[dict[int, int]]) -> float | None:
        """Return the quantile, or null over no value."""
        total = sum(sum(side.values()) for side in held)
        if not total:
            return None
        rank = self.share * (total - 1)
        seen = 0
        for value, count in self._ascending(held):
            seen += count
            if seen > rank:
                return value
        return value

    @property
    def _step(self) -> float:
        return math.log((1 + self.error) / (1 - self.error))

    def _ascending(self, held: list[dict[int, int]]) -> list[tuple[float, int]]:
        negative, zero, positive = held
        middle = 2 / (1 + math.exp(self._step))
        return [
            *((-math.exp(b * self._step) * middle, n) for b, n in sorted(negative.items())[::-1]),
            *((0.0, n) for n in zero.values()),
            *((math.exp(b * self._step) * middle, n) for b, n in sorted(positive.items())),
        ]


_ALMOST_ZERO = 1e-9
_LARGEST = 1e300
