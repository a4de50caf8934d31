"""Sums that values are subtracted from again, without a trace: as whole numbers of 2^-n."""

from typing import Any

from penstock.core.keyed.bag import Bag

__all__ = ["Summed", "Varied"]


class Summed:
    """A sum as a whole number of 2^-n, with n as large as a value needs: exact for floats too."""

    keeps_values = False
    bag: Bag | None = None

    def __init__(self, *, mean: bool) -> None:
        self._mean = mean

    def zero(self) -> list[int]:
        """Return the sum, its n, how many values there are, and how many of them are floats."""
        return [0, 0, 0, 0]

    def add(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        """Return the sum with one more value."""
        return self._plus(held, value, 1)

    def subtract(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        """Return the sum without a value."""
        return self._plus(held, value, -1)

    def result(self, _key: bytes, held: list[int]) -> Any:
        """Return the sum or the mean; null over no value, and where it is no finite number."""
        total, scale, count, floats = held
        if not count:
            return None
        try:
            if self._mean:
                return total / (count << scale)
            return total / (1 << scale) if floats else total >> scale
        except OverflowError:
            return None

    def _plus(self, held: list[int], value: Any, sign: int) -> list[int]:
        if value is None:
            return held
        total, scale, count, floats = held
        number, needs = _scaled(value)
        floats += sign * isinstance(value, float)
        if needs > scale:
            total, scale = total << (needs - scale), needs
        count += sign
        total += sign * (number << (scale - needs))
        return [total, scale, count, floats] if count else [0, 0, 0, 0]


class Varied:
    """The sample variance, by the sums of the values and of their squares, both exact."""

    keeps_values = False
    bag: Bag | None = None

    def zero(self) -> list[int]:
        """Return the sum of the values, of their squares, their n, and how many there are."""
        return [0, 0, 0, 0]

    def add(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        """Return the sums with one more value."""
        return self._plus(held, value, 1)

    def subtract(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        """Return the sums without a value."""
        return self._plus(held, value, -1)

    def result(self, _key: bytes, held: list[int]) -> float | None:
        """Return the variance; null over fewer than two values, or where it is not finite."""
        total, squares, scale, count = held
        if count <= 1:
            return None
        try:
            return (squares * count - total * total) / ((count * (count - 1)) << (2 * scale))
        except OverflowError:
            return None

    def _plus(self, held: list[int], value: Any, sign: int) -> list[int]:
        if value is None:
            return held
        total, squares, scale, count = held
        number, needs = _scaled(value)
        if needs > scale:
            total, squares = total << (needs - scale), squares << (2 * (needs - scale))
            scale = needs
        number <<= scale - needs
        count += sign
        total, squares = total + sign * number, squares + sign * number * number
        return [total, squares, scale, count] if count else [0, 0, 0, 0]


def _scaled(value: Any) -> tuple[int, int]:
    """Return a number as a whole number of 2^-n, and n."""
    if not isinstance(value, float):
        return value, 0
    number, denominator = value.as_integer_ratio()
    return number, denominator.bit_length() - 1
