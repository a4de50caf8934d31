"""A log with many topics and groups, as the console sees it: given, not read."""

from penstock.backbone.log.groups import GroupMember, GroupState
from penstock.backbone.topics.topics import TopicState
from penstock.cli.console.log import LogLook, LogWatcher

__all__ = ["Given", "many"]


class Given(LogWatcher):
    """A log whose looks are given."""

    def __init__(self, look):
        super().__init__(lambda: None)
        self._given = look

    def look(self):
        return self._given

    def schemas(self, topic):  # noqa: ARG002 - of every topic
        return []


def many(topics=200, partitions=100, groups=20):
    """Return a log with this much on it; each group reads a part of the topics."""
    names = [f"topic-{number:03}" for number in range(topics)]
    ends = {name: {n: (10, 110 + n) for n in range(partitions)} for name in names}
    config = {"retention.ms": "604800000", "cleanup.policy": "delete"}
    return LogLook(
        at=1000.0,
        took_seconds=0.1,
        topics={
            name: TopicState(name=name, partitions=partitions, replication=1, config=config)
            for name in names
        },
        ends=ends,
        rates={name: dict.fromkeys(range(partitions), 2.0) for name in names},
        groups={
            f"group-{number}": GroupState(
                name=f"group-{number}",
                state="stable",
                members=(
                    GroupMember(
                        id=f"member-{number}",
                        client="penstock",
                        host="/127.0.0.1",
                        instance_id=None,
                        partitions=((names[number], 0),),
                    ),
                ),
            )
            for number in range(groups)
        },
        committed={
            f"group-{number}": {
                (name, partition): 100
                for name in names[number::groups]
                for partition in range(partitions)
            }
            for number in range(groups)
        },
    )
