"""A job, as a value: a function from DataFrames to records, which Spark runs again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from penstock.core.graph.data import Data, OnLog, Stream
from penstock.core.graph.parts import Part
from penstock.core.units import duration_text
from penstock.errors import Place

__all__ = ["REST", "RUN", "Job", "JobRun", "Offsets"]

REST = timedelta(minutes=1)
"""How long a job rests after a run by default, whatever asks for the next one."""
RUN = "run"
"""The parameter of a job's function that takes the `JobRun`."""

Offsets = Mapping[str, Mapping[int, tuple[int, int]]]
"""Of streams and tables, by name: for each partition from which offset to which it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job: what its function may want to write down.

    Examples:
        >>> from penstock.jobs import JobRun
        >>> began_at = datetime(2026, 1, 1, tzinfo=UTC)
        >>> run = JobRun(started_at=began_at, offsets={"readings": {0: (0, 900)}})
        >>> run.read_text
        'readings 0: 0-900'
    """

    started_at: datetime
    offsets: Offsets = field(default_factory=dict)
    """What it reads; a stream with its history begins with the oldest offset of its archive."""
    asked: bool = False
    """Whether a record of ``asked_by`` is the reason for this run."""

    @property
    def read_text(self) -> str:
        """What it reads, in words; the ends of ranges are not part of them."""
        return ", ".join(
            f"{name} {number}: {begin}-{end}"
            for name, parts in sorted(self.offsets.items())
            for number, (begin, end) in sorted(parts.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Part):
    """A function from DataFrames of all there is to a few records; see ``App.job``."""

    name: str
    function: Callable[..., Any] = field(compare=False)
    reads: tuple[Data, ...]
    writes: tuple[OnLog, ...]
    every: timedelta
    asked_by: tuple[Stream[Any], ...] = ()
    """A record on one of these is a reason for a run, too."""
    rest: timedelta = REST
    takes_run: bool = False
    """Whether the function takes the `JobRun`."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["job"] = field(default="job", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return what it reads, the archives of its streams and what asks for it included."""
        archives = (data.archive for data in self.reads)
        found = (*self.reads, *(each for each in archives if each is not None), *self.asked_by)
        return tuple(dict.fromkeys(found))

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return what it writes."""
        return self.writes

    @property
    def feedback(self) -> tuple[str, ...]:
        """Return all it writes: it runs by the clock, so no record goes round for ever."""
        return tuple(data.name for data in self.writes)

    @property
    def summary(self) -> str:
        """What it is: ``job, every 10m, exactly once``."""
        asked = f" or asked by {' and '.join(each.name for each in self.asked_by)}"
        return (
            f"job, every {duration_text(self.every)}{asked if self.asked_by else ''}, exactly once"
        )

    def __call__(self, *frames: Any, **run: Any) -> Any:
        """Call the user's function itself, as its own tests do."""
        return self.function(*frames, **run)
