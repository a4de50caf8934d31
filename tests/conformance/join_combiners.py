"""Aggregates of the join cases that are not Penstock's own."""

from typing import Any


class Letters:
    """A text that values are appended to and removed from."""

    def zero(self) -> str:
        return ""

    def add(self, held: str, value: str) -> str:
        return held + value

    def subtract(self, held: str, value: str) -> str:
        return held.replace(value, "", 1)

    def merge(self, held: str, other: str) -> str:
        return held + other

    def result(self, held: str) -> str:
        return held


class Trace(Letters):
    """What was added and subtracted, as a text."""

    def zero(self) -> str:
        return "0"

    def add(self, held: str, value: str) -> str:
        return f"{held}+{value}"

    def subtract(self, held: str, value: str) -> str:
        return f"{held}-{value}"


class SetOf:
    """Each value once; it cannot be subtracted, so the engine keeps the values."""

    def zero(self) -> list[Any]:
        return []

    def add(self, held: list[Any], value: Any) -> list[Any]:
        return sorted({*held, value})

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        return sorted({*held, *other})

    def result(self, held: list[Any]) -> list[Any]:
        return held
