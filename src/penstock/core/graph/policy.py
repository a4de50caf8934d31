"""What a service does when a record fails: for each step, declared with the service."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from penstock.core.backoff import Backoff
from penstock.core.options import UnreadableSpan, span_of

__all__ = ["ErrorPolicy", "Reaction", "Retry", "on_error", "retry"]

Reaction = Literal["dead_letter", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Repeat the call, with a wait that doubles each time; after the last one, do ``then``."""

    times: int
    first: timedelta
    longest: timedelta
    then: Reaction = "dead_letter"

    def delay(self, attempt: int) -> timedelta:
        """Return the wait after this failed attempt, counted from 1."""
        return Backoff(self.first, self.longest).delay(attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What to do if a record does not decode, the user's code raises, or an output is refused."""

    decode: Reaction = "dead_letter"
    process: Reaction | Retry = "dead_letter"
    produce: Reaction = "dead_letter"

    def problems(self) -> list[str]:
        """Return what is wrong with it, in words."""
        found = []
        for boundary in ("decode", "produce"):
            if isinstance(given := getattr(self, boundary), Retry):
                found.append(f"{boundary}: the same bytes fail the same way; retry only process")
            elif given not in _REACTIONS:
                found.append(f"{boundary}: {given!r} is not one of {', '.join(_REACTIONS)}")
        process: Any = self.process
        if isinstance(process, Retry):
            found += [f"process: {wrong}" for wrong in _retry_problems(process)]
            process = process.then
        if process not in _REACTIONS:
            found.append(f"process: {process!r} is not one of {', '.join(_REACTIONS)}, retry(...)")
        return found


_REACTIONS = ("dead_letter", "stop")


def _retry_problems(retry: Retry) -> list[str]:
    times: Any = retry.times
    waits = {"first": retry.first, "longest": retry.longest}
    found = [
        f"retry: {name}: {wait.problem}"
        for name, wait in waits.items()
        if isinstance(wait, UnreadableSpan)
    ]
    if not isinstance(times, int) or isinstance(times, bool):
        found.append(f"retry({times!r}): give the number of tries as a whole number")
    elif times < 1 or retry.first <= timedelta():
        found.append("a retry needs at least one time, and a wait")
    elif not found and retry.longest < retry.first:
        found.append("retry: the longest wait is shorter than the first")
    return found


def on_error(
    *,
    decode: Reaction = "dead_letter",
    process: Reaction | Retry = "dead_letter",
    produce: Reaction = "dead_letter",
) -> ErrorPolicy:
    """Say what a service does if a record cannot be decoded, processed, or written.

    ``"dead_letter"`` keeps the record with the reason, and the service goes on. ``"stop"`` ends the
    service with the place of the record, and commits nothing of it. ``process`` may also be
    ``retry(...)``; the other steps would fail in the same way again.

    Examples:
        >>> @app.service(reads=readings, errors=on_error(decode="stop", process=retry(3)))
        ... def ask(reading: Reading) -> None: ...
    """
    return ErrorPolicy(decode=decode, process=process, produce=produce)


def retry(
    times: int,
    *,
    first: str | timedelta = "100ms",
    longest: str | timedelta = "30s",
    then: Reaction = "dead_letter",
) -> Retry:
    """Call the function again for a record that failed, up to so many times.

    The wait doubles from ``first`` to ``longest``. The partition of the record waits meanwhile, so
    that order is kept; other partitions go on. After the last try, ``then`` applies:
    ``"dead_letter"`` or ``"stop"``.

    Examples:
        >>> patient = retry(10, first="500ms", longest="1m", then="stop")
        >>> @app.service(reads=readings, errors=on_error(process=patient))
        ... def ask(reading: Reading) -> None: ...
    """
    return Retry(times=times, first=span_of(first), longest=span_of(longest), then=then)
