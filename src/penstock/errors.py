"""All errors that Penstock raises, in families by who must act.

::

    PenstockError
    ├── ConfigurationError   the operator: a setting, a missing tool, an address
    ├── DefinitionError      the author: all problems of an application at once
    ├── DataError            nobody: the record becomes a dead letter
    ├── TransientError       nobody yet: try again with back-off
    ├── FencedError          this worker: it must stop, another one has taken over
    ├── UserCodeError        the author: a function failed on one record
    └── StuckError           the author: a function does not return; the process must end

Each has a stable code, a short message, an optional detail, and a hint that says what to do next.
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
    """A line of source code. Each definition keeps its own, for messages."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a definition: what it is, where it is, and what to do."""

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
    """The base of all errors of Penstock; never raised itself."""

    def __init__(self, message: str, *, code: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail
        self.hint = hint

    @property
    def title(self) -> str:
        """The line above detail and hint. If these are not shown, ``message`` says more."""
        return self.message

    def __str__(self) -> str:
        """Return title, code, detail and hint, for people."""
        lines = [f"{self.title} [{self.code}]"]
        if self.detail:
            lines.append(f"  {self.detail}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ConfigurationError(PenstockError):
    """A setting, a tool or an address is wrong; the operator must correct it."""


class DefinitionError(PenstockError):
    """The application has mistakes: ``problems`` has all, and the message is the first."""

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
        """The number of problems; the detail lists them."""
        count = len(self.problems)
        return f"the application has {count} problem{'' if count == 1 else 's'}"


class DataError(PenstockError):
    """A record cannot be used. It becomes a dead letter, and the stream goes on."""


class TransientError(PenstockError):
    """Something is not available now. The same call may succeed later."""


class FencedError(PenstockError):
    """Another worker has taken over. This one must stop at once."""


class UserCodeError(PenstockError):
    """A user's function raised. The error has the record and its coordinates.

    ``partition`` and ``offset`` are negative if there was no partition or no record.
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
    """Something did not stop in time, and its threads are still running.

    The caller must end the process. Python itself would wait for these threads.
    """
