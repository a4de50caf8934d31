"""``penstock replay``: run a part over a range of the past, into an output of its own."""

import argparse
import threading
from collections.abc import Sequence

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.moments import END_HELP, START_HELP, read_end, read_start
from penstock.cli.screen.partlines import count_text
from penstock.cli.screen.progressbar import progress_bar
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.core.graph.data import Lake
from penstock.core.graph.parts import Pipeline, Service, Source
from penstock.core.status.report import Counts
from penstock.errors import ConfigurationError

__all__ = ["register"]


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
    from penstock.core.wiring.lookup import find_parts

    (part,) = find_parts(session.application.graph, [session.arguments.part])
    if isinstance(part, Service):
        _replay_service(session, part)
    elif isinstance(part, Pipeline):
        _replay_pipeline(session, part)
    elif isinstance(part, Source):
        raise ConfigurationError(
            f"{part.name!r} is a source: its records are already on {part.into.name!r}",
            code="replay.source",
            hint=f"penstock topics tail {part.into.name} --from earliest",
        )
    else:
        raise ConfigurationError(
            f"{part.name!r} is a {part.kind}: only services and pipelines are replayed",
            code=f"replay.{part.kind}",
            hint=f"penstock topics tail {part.inputs[0].name} --from earliest",
        )


def _replay_service(session: Session, service: Service) -> None:
    from penstock.cli.running.rerun import Range, range_size, rerun_service

    over = Range(session.arguments.start, session.arguments.end)
    with session.connected() as connection:
        total = range_size(connection, service.reads, over)
        with progress_bar(session.terminal, f"replaying {service.name}") as progress:
            done = rerun_service(
                session.application.graph,
                service,
                connection,
                over=over,
                label=session.arguments.label,
                progress=lambda handled: progress(handled, total),
            )
    _report(session, done.results, done.dead_letters, done.counts)
    if done.results and not session.arguments.json:
        session.terminal.note(f"see them: penstock topics tail {done.results[0]} --from earliest")


def _replay_pipeline(session: Session, pipeline: Pipeline) -> None:
    session.prepare_spark()
    from penstock.backbone.site import Site
    from penstock.cli.running.rerun import refuse_existing, result_name
    from penstock.pipelines.execution.batch import run_batch

    loaded, graph, label = session.loaded, session.application.graph, session.arguments.label
    result = result_name(pipeline.writes.name, label)
    with session.connected() as connection:
        refuse_existing(connection, [result], label=label)
        site = Site(
            settings=loaded.settings,
            places=loaded.places,
            connection=connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        text = f"replaying {pipeline.name} on Spark"
        with progress_bar(session.terminal, text, unit="tasks") as progress:
            done = run_batch(
                graph,
                pipeline.name,
                site,
                start=session.arguments.start,
                end=session.arguments.end,
                label=label,
                progress=progress,
            )
    _report(session, (done.result,), done.dead_letters, done.counts)
    if session.arguments.json:
        return
    if isinstance(pipeline.writes, Lake):
        where = loaded.settings.lake.path or shortened(loaded.places.lake)
        session.terminal.note(f"the result is a lake table in {where}")
    else:
        session.terminal.note(f"see it: penstock topics tail {done.result} --from earliest")


def _report(session: Session, results: Sequence[str], dead_letters: str, counts: Counts) -> None:
    terminal = session.terminal
    if session.arguments.json:
        terminal.json({"results": results, "dead_letters": dead_letters, "counts": counts})
        return
    words = f"{count_text(counts.received)} records in, {count_text(counts.written)} out"
    terminal.note(f"{session.arguments.part}: {words}")
    for name in results:
        terminal.line(name)
    if counts.dead_lettered:
        terminal.warn(f"{count_text(counts.dead_lettered)} dead letters in {dead_letters}")
