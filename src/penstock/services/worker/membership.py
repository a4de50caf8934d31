"""A worker's place in its group, as decisions: how long it may be silent, what troubles it."""

from datetime import timedelta

from penstock.core.units import span_text
from penstock.errors import TransientError

__all__ = ["LONGEST_POLL_INTERVAL", "PollInterval", "trouble_of"]

LONGEST_POLL_INTERVAL = timedelta(days=1)
"""What the client allows."""


class PollInterval:
    """How long a worker may leave its group waiting; it grows where one call needs longer."""

    def __init__(self, service: str, allowed: timedelta) -> None:
        self.allowed = allowed
        """A member that does not ask for records for this long loses its partitions."""
        self._service = service

    def error_after(self, silent: float) -> TransientError | None:
        """Return why a worker that was silent for these seconds has to join anew; None: it has not.

        From then on it is allowed twice the time that it took.
        """
        if silent < self.allowed.total_seconds():
            return None
        took = timedelta(seconds=silent)
        allowed, self.allowed = self.allowed, min(2 * took, LONGEST_POLL_INTERVAL)
        return TransientError(
            f"a call of {self._service} took {span_text(round(silent))}, and the group waits for"
            f" {span_text(allowed.total_seconds())}: it is made again, with twice the time it took",
            code="service.slow-call",
            hint="raise services.poll_interval above what one call may take",
        )


def trouble_of(
    contact: str | None, *, setback: str, joined: bool, has_joined: bool, group: str
) -> str:
    """Return what keeps a worker from its work now; empty: nothing does.

    ``contact`` is why the cluster cannot be reached, ``setback`` why the worker began again.
    """
    if contact:
        return contact
    if setback:
        return f"it began again and has come no further yet: {setback}"
    if has_joined and not joined:
        return f"it was silent too long and lost its partitions; joining {group} again"
    return ""
