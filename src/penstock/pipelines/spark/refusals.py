"""Why Spark refuses the plan of a function, in the words of a pipeline.

Spark gives advice for whole programs: to start a query, to call ``withWatermark``. A pipeline does
that in another way, or its function must not do it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.core.graph.parts import Pipeline
from penstock.errors import DefinitionError, PenstockError, Problem
from penstock.pipelines.spark.failures import of_definition

__all__ = ["refusal"]

_PLAN = re.compile(r";\s*~.*", re.DOTALL)
"""The tree that Spark puts behind some of its messages."""
_STARTED = re.compile(r"Queries with streaming sources must be executed with writeStream.*")
_STARTS = "the function starts a query over its input, but it may only build a plan"
_HINTS: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(re.escape(_STARTS)),
        "no collect(), count(), show() or write in it; return the frame, Penstock runs it",
    ),
    (
        re.compile(r"output mode: append\..* aggregations without watermark"),
        "write a table, or give the stream event_time=EventTime(disorder=...) and group by windows",
    ),
    (
        re.compile(r"join between two streaming .* without a watermark"),
        "give both streams event_time=EventTime(disorder=...), and the condition a bound in time",
    ),
    (
        re.compile(r"dropDuplicatesWithinWatermark is not supported .* without watermark"),
        'say how late its records may come: app.stream(..., event_time=EventTime(disorder="30s"))',
    ),
)


def refusal(error: Exception, pipeline: Pipeline) -> PenstockError:
    """Return what an error in the user's function, or in the plan it makes, says to its author."""
    named = of_definition(error, pipeline)
    if named is error or not isinstance(named, DefinitionError):
        return named
    return DefinitionError(tuple(_advised(problem) for problem in named.problems))


def _advised(problem: Problem) -> Problem:
    if problem.code != "pipeline.plan" or problem.hint:
        return problem
    message = _STARTED.sub(_STARTS, _PLAN.sub("", problem.message))
    hint = next((hint for pattern, hint in _HINTS if pattern.search(message)), "")
    return replace(problem, message=message, hint=hint)
