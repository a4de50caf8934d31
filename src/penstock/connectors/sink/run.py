"""Runs a sink: its consumer, its writer and its dead letters; what is transient is tried again."""

from contextlib import closing

from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.membership import Listener
from penstock.backbone.log.producer import Producer
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.connectors.connector import WritingConnector
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries, keep_trying
from penstock.connectors.sink.session import Run, Session
from penstock.connectors.sink.standing import require_same_log
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Sink

__all__ = ["run_writing"]


def run_writing(
    graph: Graph, sink: Sink, connector: WritingConnector, *, site: Site, progress: Progress
) -> None:
    """Write the records of the stream until the site stops."""
    run = Run(
        sink=sink,
        limits=connector.limits,
        dead_letters=graph.dead_letters.name,
        stop=site.stop,
        progress=progress,
        retries=Retries(),
    )

    def session() -> None:
        # Opened first: nobody else writes for this sink before its partitions are assigned here.
        with (
            closing(connector.open(sink)) as writer,
            Producer(site.connection) as letters,
        ):
            topic = sink.reads.topic.name
            if written := writer.positions():
                require_same_log(topic, written, Topics(site.connection).ends(topic))
            own = Session(run, writer=writer, letters=letters)
            with Consumer(
                site.connection,
                group=f"{graph.app}.{sink.name}",
                topics=[topic],
                settings=site.settings.services,
                listener=Listener(on_revoke=own.lose, on_lost=own.lose),
            ) as reader:
                own.read_on(reader)

    keep_trying(session, retries=run.retries, stop=site.stop, progress=progress)
