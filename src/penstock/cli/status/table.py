"""The status of a project as rows: the parts, and what each says of itself. Values, no I/O."""

from collections.abc import Iterator
from datetime import datetime

from penstock.cli.screen.partlines import count_text, rate_text
from penstock.cli.status.overview import Overview
from penstock.core.status.status import PartStatus, RunStatus
from penstock.core.units import span_text

__all__ = ["FACT_COLUMNS", "PART_COLUMNS", "fact_rows", "part_rows", "run_line"]

PART_COLUMNS = (
    *("app", "part", "process", "kind", "state", "since"),
    *("in", "out", "lag", "dead", "restarts", "what"),
)
FACT_COLUMNS = ("app", "part", "process", "fact", "value")


def run_line(run: RunStatus, now: datetime) -> str:
    """Return what runs the parts."""
    up = span_text((now - run.started_at).total_seconds())
    return f"{run.app}: penstock {run.command}, process {run.pid}, up {up}"


def part_rows(overview: Overview) -> Iterator[tuple[str, ...]]:
    """Yield a row for each part."""
    for run in overview.runs:
        for part in run.parts:
            process = _process(run, part)
            yield run.app, part.part, process, part.kind, part.state, *_numbers(part)


def _numbers(part: PartStatus) -> tuple[str, ...]:
    return (
        span_text(part.since_seconds),
        f"{count_text(part.counts.received)} ({rate_text(part.rate_in)})",
        f"{count_text(part.counts.written)} ({rate_text(part.rate_out)})",
        "" if part.lag is None else count_text(part.lag),
        count_text(part.counts.dead_lettered),
        count_text(part.restarts),
        part.why,
    )


def fact_rows(overview: Overview) -> Iterator[tuple[str, ...]]:
    """Yield a row for everything further that a part says."""
    for run in overview.runs:
        for part in run.parts:
            for fact, value in part.detail.items():
                yield run.app, part.part, _process(run, part), fact, value


def _process(run: RunStatus, part: PartStatus) -> str:
    """Return the name of a part's process: of a plain run, which is one itself, its number."""
    return str(run.pid) if part.process == "0" else part.process
