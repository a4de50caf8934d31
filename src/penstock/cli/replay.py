"""``penstock replay``: a part over a range of the past, into a place of its own."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.moments import END_HELP, START_HELP, read_end, read_start
from penstock.cli.partlines import count_text
from penstock.cli.session import Session
from penstock.cli.terminal import Terminal
from penstock.core.graph import Pipeline, Service
from penstock.errors import ConfigurationError

__all__ = ["register"]

_PLAIN_STEPS = 10


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument("--part", required=True, metavar="NAME", help="a service or a pipeline")
    parser.add_argument(
        "--from", dest="start", type=read_start, default="earliest", help=START_HELP
    )
    parser.add_argument("--to", dest="end", type=read_end, default="latest", help=END_HELP)
    parser.add_argument(
        "--as", dest="label", required=True, metavar="LABEL", help="results: <stream>.replay.LABEL"
    )
    add_json(parser)
    command(parser, _replay)


def _replay(session: Session) -> None:
    from penstock.cli.engines import find_parts

    (part,) = find_parts(session.application.graph, [session.arguments.part])
    if isinstance(part, Service):
        _replay_service(session, part)
    elif isinstance(part, Pipeline):
        _replay_pipeline(session, part)
    else:
        raise ConfigurationError(
            f"{part.name!r} is a source: what it brought is on {part.into.name!r} already",
            code="replay.source",
            hint=f"penstock topics tail {part.into.name} --from earliest",
        )


def _replay_service(session: Session, service: Service) -> None:
    from penstock.cli.rerun import Range, range_size, rerun_service

    over = Range(session.arguments.start, session.arguments.end)
    with session.connected() as connection:
        total = range_size(connection, service.reads, over)
        with _progress(session.terminal, total) as progress:
            done = rerun_service(
                session.application.graph,
                service,
                connection,
                over=over,
                label=session.arguments.label,
                progress=progress,
            )
    counts = done.counts
    if session.arguments.json:
        session.terminal.json(
            {"results": done.results, "dead_letters": done.dead_letters, "counts": counts}
        )
        return
    words = f"{count_text(counts.received)} records in, {count_text(counts.written)} out"
    session.terminal.note(f"{service.name}: {words}")
    for topic in done.results:
        session.terminal.line(topic)
    if counts.dead_lettered:
        count = count_text(counts.dead_lettered)
        session.terminal.warn(f"{count} dead letters in {done.dead_letters}")
    if done.results:
        session.terminal.note(f"see them: penstock topics tail {done.results[0]} --from earliest")


def _replay_pipeline(session: Session, pipeline: Pipeline) -> None:
    raise NotImplementedError(pipeline.name)


@contextmanager
def _progress(terminal: Terminal, total: int) -> Iterator[Callable[[int], None]]:
    """Give what shows how many of all records are done: a bar, or a line for each tenth."""
    if not terminal.draws_notes:
        shown = 0

        def tell(done: int) -> None:
            nonlocal shown
            step = _PLAIN_STEPS * done // max(total, 1)
            if step > shown:
                shown = step
                terminal.note(f"{count_text(done)} of about {count_text(total)} records")

        yield tell
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal.notes) as bar:
        task = bar.add_task("replay", total=total)
        yield lambda done: bar.update(task, completed=done)
