"""Every error Penstock raises, in families by who must act.

::

    PenstockError
    ├── ConfigurationError   the operator: a setting, a missing tool, an address
    ├── DefinitionError      the author: all problems of an application at once
    ├── DataError            the record: it goes to the dead-letter topic
    ├── TransientError       nobody yet: it may pass, try again with backoff
    ├── FencedError          this worker: another one has taken over, stop
    ├── UserCodeError        the author: a function failed on one record
    └── StuckError           the author: a function does not return; the process has to end

Each has a stable code, a short message, an optional detail and a hint that says what to do next.
"""

from dataclasses import dataclass, field

__all__ = [
    "ConfigurationError",
    "DataError",
    "DefinitionError",
    "FencedError",
    "PenstockError",
    "Place",
    "Problem",
    "StuckError",
    "TransientError",
    "UserCodeError",
]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of source text, kept with each definition for messages."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a definition: what, where and what to do about it."""

    code: str
    message: str
    hint: str = ""
    place: Place | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return the problem as one or two lines of text."""
        where = f"{self.place}: " if self.place else ""
        hint = f"\n    hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message} [{self.code}]{hint}"


class PenstockError(Exception):
    """The root of the tree; never raised itself."""

    def __init__(self, message: str, *, code: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail
        self.hint = hint

    @property
    def title(self) -> str:
        """What stands above detail and hint; where they are not shown, ``message`` says more."""
        return self.message

    def __str__(self) -> str:
        """Return title, code, detail and hint as text for a person."""
        lines = [f"{self.title} [{self.code}]"]
        if self.detail:
            lines.append(f"  {self.detail}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ConfigurationError(PenstockError):
    """A setting, a tool or an address is wrong; the operator mends it."""


class DefinitionError(PenstockError):
    """The application is wrong; carries every problem that was found, the first as its message."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            "".join(problem.message for problem in problems[:1]) + more,
            code="definition.invalid",
            detail="\n  ".join(str(problem) for problem in problems),
        )
        self.problems = problems

    @property
    def title(self) -> str:
        """How many problems there are; the detail has each."""
        count = len(self.problems)
        return f"the application has {count} problem{'' if count == 1 else 's'}"


class DataError(PenstockError):
    """A record cannot be used; it is dead-lettered and the stream goes on."""


class TransientError(PenstockError):
    """Something is away for now; the same call may succeed later."""


class FencedError(PenstockError):
    """Another worker has taken over; this one must stop at once."""


class UserCodeError(PenstockError):
    """A user's function raised; names, and carries, the record it raised on.

    Negative numbers: it was not on a record, or not in a partition.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str,
        partition: int,
        offset: int,
        record: object = None,
        hint: str = "",
    ) -> None:
        super().__init__(
            message,
            code="user.raised",
            detail=f"at {topic}"
            + (f"[{partition}]" if partition >= 0 else "")
            + (f" offset {offset}" if offset >= 0 else ""),
            hint=hint,
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.record = record


class StuckError(PenstockError):
    """Something does not stop although its time is over; threads are left behind at work.

    Whoever gets it ends the process, which Python alone would not do while they work.
    """
