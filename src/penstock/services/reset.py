"""A service taken back to its beginning: the log is the truth, and its state is rebuilt from it."""

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service

__all__ = ["NOWHERE", "reset_service"]

NOWHERE = 1 << 62
"""An offset that no log has: a service that stands there refuses to run."""


def reset_service(graph: Graph, service: Service, connection: Connection) -> int:
    """Forget the offsets and the state of a service; return how many offsets it has to read again.

    Its next run begins at the oldest records of its input with no state, and writes everything it
    gives once more, beside what it wrote before. Copies of its state on disks are of no use then.

    ConfigurationError ``group.busy`` while it has a worker. Interrupted half-way it leaves what
    refuses to run (``offset.beyond-end``) until it is reset again: never old state with new
    offsets, or the other way round.
    """
    topics, groups = Topics(connection), Groups(connection)
    group = f"{graph.app}.{service.name}"
    inputs = [data.topic.name for data in service.reads if topics.exists(data.topic.name)]
    ends = {
        (topic, number): found for topic in inputs for number, found in topics.ends(topic).items()
    }
    groups.reset(group, dict.fromkeys(ends, NOWHERE))
    if service.keeps_state:
        changelog = graph.changelog(service)
        if topics.exists(changelog.name):
            topics.delete([changelog.name])
        topics.declare([changelog])
    groups.delete([group])
    return sum(high - low for low, high in ends.values())
