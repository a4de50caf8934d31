"""Where a pattern must be one that Java's engine runs safely: nothing else can be asked there.

Everywhere else RE2 matches it; see ``core.expression.backtracking``.
"""

from collections.abc import Iterator

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, RealTime
from penstock.core.matching.backtracking import runs_straight
from penstock.errors import Problem

__all__ = ["pattern_problems"]


def pattern_problems(graph: Graph) -> Iterator[Problem]:
    """Yield a problem for each pattern that Java might take for ever for."""
    for part in graph.parts:
        if not isinstance(part, Pipeline):
            continue
        real_time = isinstance(part.trigger, RealTime)
        for data in (*part.reads, part.writes) if real_time else (part.writes,):
            record = getattr(data, "record", None)  # another rule says what is no stream or table
            where = "in real-time mode" if real_time else "in lists or maps"
            for pattern in record.schema.patterns(listed=not real_time) if record else ():
                if not runs_straight(pattern):
                    shown = f"{pattern!r} of {data.name!r}"
                    text = f"pipeline {part.name!r} cannot match {shown} {where}"
                    hint = "write a pattern that begins with ^ and has one way through a text"
                    yield Problem("pipeline.pattern", text, hint, part.place)
