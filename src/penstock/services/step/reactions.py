"""What happens to what failed: it is buried, held back and tried again, or ends the service."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from penstock.core.graph.parts import Service
from penstock.core.graph.policy import Reaction, Retry
from penstock.core.records.deadletter import Coordinates
from penstock.errors import DataError, PenstockError, UserCodeError
from penstock.services.step.retries import Retried, Retries
from penstock.services.usererrors import describe_error

__all__ = ["Hold", "Reactions"]

_REFUSED_OUTPUTS = frozenset({"data.not-encodable", "data.too-large"})


class Hold(NamedTuple):
    """A record that is handled later; nothing behind it is handled before."""

    offset: int
    until: datetime
    unfinished: bool = False
    """Whether nothing failed: the time was up."""


class Reactions:
    """Applies a service's error policy."""

    def __init__(self, service: Service, *, clock: Callable[[], datetime]) -> None:
        self._service = service
        self._policy = service.errors
        self._clock = clock
        self._attempts: dict[Any, tuple[Any, int]] = {}
        self.retries = Retries(service.name, clock=clock)
        """What waits to be tried again."""

    def to_bytes(self, error: DataError, place: Coordinates, value: bytes | None) -> None:
        """React to a record that does not decode: it may be buried, or this raises."""
        if self._policy.decode == "stop":
            raise self._stopped(error, place, value)

    def to_call(
        self,
        error: BaseException,
        place: Coordinates,
        record: Any,
        *,
        attempt: int,
        doing: str = "",
    ) -> Hold | PenstockError:
        """React to a failed call, the ``attempt``-th: hold it, or the error to bury it with."""
        failure = self.user_error(error, place, record, doing=doing)
        refused = isinstance(error, DataError) and error.code in _REFUSED_OUTPUTS
        reaction: Reaction | Retry = self._policy.produce if refused else self._policy.process
        if isinstance(reaction, Retry):
            if attempt <= reaction.times:
                return self._hold(failure, place, reaction, attempt=attempt)
            reaction = reaction.then
            self.retries.settle(place)
        if reaction == "stop":
            raise self._stopped(failure, place, record)
        return failure

    def user_error(
        self, error: BaseException, place: Coordinates, record: Any = None, *, doing: str = ""
    ) -> PenstockError:
        """Return what the user's code raised as an error that names the record."""
        if isinstance(error, DataError):
            return error
        return UserCodeError(
            f"{self._service.name} {doing}{describe_error(error)}",
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            record=record,
        )

    def attempt(self, place: Coordinates, what: Any = None) -> int:
        """Count a failure of what is handled in order; return how often it failed in a row.

        ``what`` tells it from others at the same place; a record is told by its offset.
        """
        where, what = (place.topic, place.partition), place.offset if what is None else what
        last, count = self._attempts.get(where, (None, 0))
        count = count + 1 if last == what else 1
        self._attempts[where] = (what, count)
        return count

    def _hold(
        self, error: PenstockError, place: Coordinates, policy: Retry, *, attempt: int
    ) -> Hold:
        until = self._clock() + policy.delay(attempt)
        self.retries.add(
            Retried(
                place=place,
                failed=attempt,
                tries=policy.times + 1,
                until=until,
                reason=error.message,
            )
        )
        return Hold(place.offset, until)

    def _stopped(self, error: PenstockError, place: Coordinates, record: Any) -> PenstockError:
        hint = "mend what fails, or let it be dead-lettered: errors=on_error(...)"
        if isinstance(error, UserCodeError):
            error.hint = hint
            return error
        return UserCodeError(
            f"{self._service.name} stops at {place}: {error.message}",
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            record=record,
            hint=hint,
        )
