"""Options of connectors as people write them: all that is wrong is kept, nothing is raised."""

from datetime import timedelta
from typing import Any

from penstock.core.options import Options
from penstock.core.place import caller
from penstock.errors import Problem

__all__ = ["ConnectorOptions"]


class ConnectorOptions(Options):
    """Reads the options of one connector; each problem has the line that made the connector.

    The connector keeps them as ``problems``, and `penstock check` shows those of all sources.
    """

    def __init__(self, connector: str, problems: list[Problem]) -> None:
        super().__init__(connector, caller(), problems)

    def text(self, option: str, given: Any, otherwise: str, hint: str) -> str:
        """Return a text."""
        if isinstance(given, str):
            return given
        self.wrong(option, f"{given!r} is not a text", hint)
        return otherwise

    def flag(self, option: str, given: Any) -> bool:
        """Return whether something is to be so."""
        if isinstance(given, bool):
            return given
        self.wrong(option, f"{given!r} is neither True nor False", f"{option}=True, for example")
        return False

    def whole(
        self, option: str, given: Any, otherwise: int, *, least: int, most: int | None = None
    ) -> int:
        """Return a whole number within bounds, both included."""
        number = isinstance(given, int) and not isinstance(given, bool)
        if number and least <= given and (most is None or given <= most):
            return int(given)
        hint = f"give it {least} or more" if most is None else f"give it {least} to {most}"
        self.wrong(
            option,
            f"{given!r} is out of range" if number else f"{given!r} is not a whole number",
            hint,
        )
        return otherwise

    def maybe_rate(self, option: str, given: Any) -> float | None:
        """Return a number per second that is more than 0, or None where that was given."""
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if given is None or (number and given > 0):
            return None if given is None else float(given)
        self.wrong(
            option,
            f"{given!r} is not a number above 0",
            f"{option}=100, for example: so many a second",
        )
        return None

    def positive_span(self, option: str, given: Any, otherwise: timedelta) -> timedelta:
        """Return a time span longer than nothing."""
        span = self.span(option, given, otherwise)
        if span == timedelta():
            self.wrong(option, f"{given!r} is not longer than 0s", 'give it more than "0s"')
            return otherwise
        return span

    def wrong(self, option: str, text: str, hint: str, *, code: str = "source.option") -> None:
        """Keep a problem with an option."""
        super().wrong(option, text, hint, code=code)
