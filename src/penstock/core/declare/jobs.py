"""The method of `App` that declares jobs."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.core.declare.declarations import Declarations
from penstock.core.graph.data import Data, OnLog, Stream
from penstock.core.graph.job import REST, RUN, Job
from penstock.core.place import caller, place_of

__all__ = ["DeclaresJobs"]

_DAY = timedelta(days=1)


class DeclaresJobs:
    """Declares jobs, with their options."""

    _declared: Declarations

    def job(
        self,
        *,
        reads: Data | tuple[Data, ...],
        writes: OnLog | tuple[OnLog, ...],
        every: str | timedelta,
        asked_by: Stream[Any] | tuple[Stream[Any], ...] = (),
        rest: str | timedelta = REST,
        name: str | None = None,
    ) -> Callable[[Callable[..., Any]], Job]:
        """Declare a job: a function from DataFrames to records, which Spark runs periodically.

        Use it as a decorator. Each run gets a frame of all that is there: of a stream all committed
        records, of a table the latest row of each key, of a lake table its newest version. It
        returns a record, several, or None; all records of a run become visible in one transaction,
        or none. A run that fails is repeated after a while, and the job is degraded until then.

        Args:
            reads: What the function gets a frame of, in this order; ``archive.then_live`` among
                them.
            writes: The streams and tables that take the records, by their type.
            every: A run begins this long after the last one began, also across restarts.
            asked_by: Streams; a new record on one of them is a reason for a run as well.
            rest: How long no run begins after the last one began, whatever asks for it (1 m).
            name: The name of the job, its identity; by default that of the function.

        A parameter ``run``, keyword-only, takes a `JobRun`: when the run began, and which offsets
        it reads.

        Examples:
            >>> @app.job(reads=readings, writes=hot, every="1h")
            ... def hottest(readings):
            ...     row = readings.orderBy(readings.celsius.desc()).first()
            ...     return Alarm(row.device, "the hottest") if row else None
            >>> hottest.summary
            'job, every 1h, exactly once'
        """

        def decorate(function: Callable[..., Any]) -> Job:
            place = place_of(function) or caller()
            options, called = self._declared.named("job", name, function, place)
            options.function("what it computes", function)
            job = Job(
                name=called,
                function=function,
                reads=self._declared.known(called, reads, place),
                writes=self._declared.known(called, writes, place),
                every=options.span("every", every, _DAY),
                asked_by=self._declared.known(called, asked_by, place),
                rest=options.span("rest", rest, REST),
                takes_run=_takes_run(function),
                place=place,
            )
            self._declared.parts.append(job)
            return job

        return decorate


def _takes_run(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return RUN in parameters and parameters[RUN].kind is inspect.Parameter.KEYWORD_ONLY
