"""How many different values there are, about, in bounded space."""

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from penstock.core.aggregates.aggregate import Aggregate, Form, whole_number

__all__ = ["ApproximateDistinct", "approximate_distinct"]

_ENCODER = msgspec.json.Encoder(order="deterministic")


@Form(gives=whole_number, examples=({}, {"bits": 4}))
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


def approximate_distinct(of: str) -> Aggregate:
    """Estimate how many different values there are; null values are left out.

    The standard error is 2 %. The state of a window stays small, however many values there are.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(levels=approximate_distinct("celsius"))
    """
    return Aggregate(ApproximateDistinct(), of)
