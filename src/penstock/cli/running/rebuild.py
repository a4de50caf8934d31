"""``penstock rebuild``: recompute a pipeline from the log and replace its output."""

import argparse
from typing import TYPE_CHECKING

from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.screen.partlines import count_text
from penstock.cli.screen.progressbar import progress_bar
from penstock.cli.session import Session
from penstock.cli.stopping import INTERRUPTED, stop_on_signals
from penstock.core.graph.data import Lake, Table
from penstock.core.graph.parts import Pipeline

if TYPE_CHECKING:
    from penstock.pipelines.rebuild.rebuild import Rebuilt

__all__ = ["register"]

_SAID = {
    "computed": "computed; switching over",
    "fenced": "the old run has ended",
    "switched": "switched over",
}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "part", metavar="NAME", help="a pipeline, or the table or stream that an aggregation fills"
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="for a stream: append what is computed to what was written",
    )
    parser.add_argument(
        "--trimmed",
        action="store_true",
        help="compute from what is left if retention has deleted the beginning",
    )
    add_json(parser)
    command(parser, _rebuild)


def _rebuild(session: Session) -> int:
    session.prepare_spark()
    from penstock.backbone.declare import declare_application
    from penstock.backbone.site import Site
    from penstock.pipelines.rebuild.rebuild import Watching, rebuild_pipeline, refuse_rebuild

    arguments, graph = session.arguments, session.application.graph
    filling = f"{arguments.part}.windows"
    name = filling if graph.part(filling) else arguments.part
    pipeline = refuse_rebuild(graph, name, append=arguments.append)
    replacing = pipeline.writes.name if isinstance(pipeline.writes, Table) else None
    with stop_on_signals() as stop, session.connected() as connection:
        declare_application(graph, connection, replacing=replacing)
        site = Site(
            settings=session.loaded.settings,
            places=session.loaded.places,
            connection=connection,
            stop=stop.event,
            report=lambda _: None,
        )

        def step(name: str) -> None:
            if name in _SAID:
                session.terminal.note(f"{pipeline.name}: {_SAID[name]}")

        with progress_bar(session.terminal, f"rebuilding {pipeline.name}") as progress:
            done = rebuild_pipeline(
                graph,
                pipeline.name,
                site,
                append=arguments.append,
                trimmed=arguments.trimmed,
                watching=Watching(progress=progress, step=step),
            )
    if done is None:
        session.terminal.note(f"stopped; to continue: penstock rebuild {pipeline.name}")
        return stop.exit_code or INTERRUPTED
    _report(session, pipeline, done)
    return 0


def _report(session: Session, pipeline: Pipeline, done: "Rebuilt") -> None:
    if session.arguments.json:
        late = done.late and {"records": done.late.records, "complete": done.late.complete}
        session.terminal.json({"output": done.output, "changed": done.changed, "late": late})
        return
    if isinstance(pipeline.writes, Lake):
        said = f"{done.output} was replaced; its history has the earlier contents"
    elif isinstance(pipeline.writes, Table):
        said = f"{count_text(done.changed or 0)} keys of {done.output} have changed"
    else:
        said = f"{count_text(done.changed or 0)} records were added to {done.output}"
    session.terminal.note(f"{pipeline.name}: {said}")
    if done.late:
        session.terminal.note(f"{pipeline.name}: {done.late}")
    hint = f"penstock run {session.arguments.app} --part {pipeline.name}"
    session.terminal.note(f"the pipeline continues from there when you start it again: {hint}")
