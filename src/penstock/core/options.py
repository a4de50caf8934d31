"""Options of declarations as people write them: what cannot be used is kept, nothing is raised."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from penstock.core.hints import did_you_mean
from penstock.core.units import UnitError, duration, size
from penstock.errors import Place, Problem

__all__ = ["Options", "UnreadableSpan", "span_of"]

V = TypeVar("V")


class UnreadableSpan(timedelta):
    """Stands for a span that could not be read; `penstock check` says why."""

    problem: str

    def __eq__(self, other: object) -> bool:
        """Return whether the same is wrong with both: annotations are cached by equality."""
        return isinstance(other, UnreadableSpan) and self.problem == other.problem

    def __hash__(self) -> int:
        """Return a hash of what is wrong."""
        return hash(self.problem)


def span_of(given: Any) -> timedelta:
    """Return a span where there is nowhere to keep a problem but in its place."""
    try:
        return duration(given)
    except UnitError as error:
        kept = UnreadableSpan(microseconds=1)
        kept.problem = str(error)
        return kept


class Options:
    """Reads the options of one declaration; what is wrong with one is kept among ``problems``.

    Each reader returns what was meant, or ``otherwise`` where nothing usable was given.
    """

    def __init__(self, owner: str, place: Place | None, problems: list[Problem]) -> None:
        self._owner = owner
        self._place = place
        self._problems = problems

    def name(self, given: Any) -> str:
        """Return a name as text; its letters are the business of `check`."""
        if not isinstance(given, str):
            self.wrong("name", f"{given!r} is not a text", 'names are texts: "readings"')
        return str(given)

    def span(self, option: str, given: Any, otherwise: timedelta) -> timedelta:
        """Return a time span that is not negative."""
        found = self._read(duration, option, given, otherwise)
        if isinstance(found, UnreadableSpan):
            self.wrong(option, found.problem, "")
            return otherwise
        if found < timedelta():
            self.wrong(option, f"{given!r} is negative", "give it a span of time")
            return otherwise
        return found

    def maybe_span(
        self, option: str, given: Any, otherwise: timedelta | None = None
    ) -> timedelta | None:
        """Return a time span, or None where that was given."""
        return None if given is None else self.span(option, given, otherwise or timedelta())

    def size(self, option: str, given: Any, otherwise: int) -> int:
        """Return a number of bytes, at least one."""
        found = self._read(size, option, given, otherwise)
        if found < 1:
            self.wrong(option, f"{given!r} is not a size", 'give it at least "1B"')
            return otherwise
        return found

    def count(self, option: str, given: Any, otherwise: int) -> int:
        """Return a whole number; how large it may be is the business of `check`."""
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        self.wrong(option, f"{given!r} is not a whole number", f"{option}={otherwise}, for example")
        return otherwise

    def maybe_count(self, option: str, given: Any) -> int | None:
        """Return a whole number, or None where that was given."""
        return None if given is None else self.count(option, given, 1)

    def maybe_size(self, option: str, given: Any, otherwise: int) -> int | None:
        """Return a number of bytes, or None where that was given."""
        return None if given is None else self.size(option, given, otherwise)

    def word(self, option: str, given: Any, words: tuple[V, ...], otherwise: V) -> V:
        """Return one of the words that are known."""
        if isinstance(given, str) and given in words:
            return words[words.index(given)]
        known = did_you_mean(given, [str(word) for word in words])
        self.wrong(option, f"there is no {given!r}", known)
        return otherwise

    def function(self, option: str, given: Any) -> None:
        """Say where something is not a function."""
        if not callable(given):
            self.wrong(option, f"{given!r} is not a function", "give it a function")

    def wrong(self, option: str, text: str, hint: str, *, code: str = "data.option") -> None:
        """Keep a problem with an option."""
        message = f"{self._owner}: {option}: {text}"
        self._problems.append(Problem(code, message, hint, self._place))

    def _read(self, parse: Callable[[Any], V], option: str, given: Any, otherwise: V) -> V:
        try:
            return parse(given)
        except UnitError as error:
            self.wrong(option, str(error), "")
            return otherwise
