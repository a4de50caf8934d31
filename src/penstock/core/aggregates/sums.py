"""The sum and the mean of numbers."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, Reduction, finite, real_number, same

__all__ = ["Mean", "Sum", "mean", "total"]

_LARGEST = 2**62
"""The largest sum of absolute values left to Arrow, which does not say when it overflows."""

_HALVES = "sum(shiftright({value}, 32))", f"sum({{value}} & {0xFFFFFFFF}L)"
_HIGH, _LOW = (f"cast({half} as decimal(20,0))" for half in _HALVES)
_WHOLE_SUM = f"try_cast({_HIGH} * {2**32}BD + {_LOW} as bigint)"
"""A sum of whole numbers that is null only if the result itself has no room.

Both halves are added up apart, which cannot overflow before there are 2^31 records.
"""


def _held(found: Any, count: int) -> list[Any]:
    return [found or 0, count]


def _fits(largest: float, count: int) -> bool:
    return largest * count < _LARGEST


@Form(
    takes="numbers",
    gives=same,
    nullable=True,
    spark={"int": _WHOLE_SUM, "float": finite("sum({value})")},
    arrow={
        "int": Reduction(("sum", "count"), _held, safe=_fits),
        "float": Reduction(("sum", "count"), _held),
    },
)
@dataclass(frozen=True, slots=True)
class Sum:
    """The sum; null over no value."""

    def zero(self) -> list[Any]:
        """Return an empty accumulator: sum and count."""
        return [0, 0]

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """Add a value."""
        if value is not None:
            held[0] += value
            held[1] += 1
        return held

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Add up both."""
        return [held[0] + other[0], held[1] + other[1]]

    def result(self, held: list[Any]) -> Any:
        """Return the sum, or null."""
        return held[0] if held[1] else None


@Form(
    takes="floats",
    gives=real_number,
    nullable=True,
    spark=finite("avg({value})"),
    arrow={"float": Reduction(("sum", "count"), _held)},
)
class Mean(Sum):
    """The arithmetic mean; null over no value."""

    __slots__ = ()

    def result(self, held: list[Any]) -> Any:
        """Return the mean, or null."""
        return held[0] / held[1] if held[1] else None


def total(of: str) -> Aggregate:
    """Add up the values of a number; null values are left out.

    The result is of the type of the expression. It is null if there is no value, or if a record
    cannot hold the sum. Sums of floats may differ in their last digits between runs.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(heat=total("celsius"))
    """
    return Aggregate(Sum(), of)


def mean(of: str) -> Aggregate:
    """Compute the arithmetic mean of a number; null values are left out.

    The result is a float, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(fahrenheit=mean("celsius * 1.8 + 32"))
    """
    return Aggregate(Mean(), of)
