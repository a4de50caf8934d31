"""Consumer groups seen from outside: their members and their lag."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ re-exports
    ConsumerGroupDescription,
)

from penstock.backbone.client.admin import Admin
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import cause
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.log.positions import (
    POSITION_PREFIX,
    alter_offsets,
    committed_offsets,
    delete_group,
)
from penstock.errors import ConfigurationError

__all__ = ["GroupMember", "GroupState", "Groups", "Lag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One consumer of a group and the partitions it has."""

    id: str
    client: str
    host: str
    instance_id: str | None
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """A group as it is now. ``position``: it keeps a position and never has members."""

    name: str
    state: str
    members: tuple[GroupMember, ...] = ()

    @property
    def position(self) -> bool:
        """Whether the group is a durable position, not a group of consumers."""
        return self.name.startswith(POSITION_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a group is behind in one partition."""

    committed: int
    end: int

    @property
    def lag(self) -> int:
        """The number of offsets between the group and the end of the partition."""
        return max(0, self.end - self.committed)


class Groups:
    """The consumer groups of one cluster, positions among them.

    Spark keeps its offsets in checkpoints: its queries are not here.
    """

    def __init__(self, connection: Connection) -> None:
        self._admin = Admin(connection)

    def list(self) -> Sequence[GroupState]:
        """Return all groups by name, with their members."""
        found = self._admin.answer(
            self._admin.client.list_consumer_groups(request_timeout=self._admin.timeout),
            doing="reading the list of groups",
        )
        if found.errors:
            raise self._admin.failure(cause(found.errors[0]), doing="reading the list of groups")
        return self._describe(sorted(group.group_id for group in found.valid))

    def describe(self, name: str) -> GroupState:
        """Return one group; ConfigurationError ``group.missing`` if there is none."""
        states = [state for state in self.list() if state.name == name]
        if states:
            return states[0]
        raise ConfigurationError(
            f"there is no group {name!r} on {self._admin.connection.bootstrap}",
            code="group.missing",
            hint="penstock groups",
        )

    def members(self, name: str) -> tuple[GroupMember, ...]:
        """Return the members of a group with what they have; none: there is no such group now."""
        states = self._describe([name])
        return states[0].members if states else ()

    def lag(self, name: str) -> dict[Partition, Lag]:
        """Return how far a group is behind, in every partition it has committed an offset for.

        Partitions of topics that were deleted are left out. A group that does not exist has none.
        Offsets that a transaction is still moving count when it has ended.
        """
        committed = committed_offsets(self._admin, name, stable=False) or {}
        topics = self._admin.topics()
        present = [at for at in sorted(committed) if at[1] < len(topics.get(at[0], ()))]
        return {
            at: Lag(committed=committed[at], end=end)
            for at, (_, end) in self._admin.ends(present).items()
        }

    def committed(self, name: str) -> Offsets:
        """Return the offsets that a group has committed; none: it has not, or does not exist."""
        return committed_offsets(self._admin, name, stable=False) or {}

    def reset(self, name: str, offsets: Offsets) -> None:
        """Move a group that has no members now to other offsets."""
        alter_offsets(self._admin, name, offsets)

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups that have no members now; those that do not exist are no error."""
        for name in names:
            delete_group(self._admin, name)

    def _describe(self, names: Sequence[str]) -> Sequence[GroupState]:
        if not names:
            return []
        doing = "reading the members of groups"
        found = self._admin.ask(
            lambda: self._admin.client.describe_consumer_groups(
                [*names], request_timeout=self._admin.timeout
            ),
            doing=doing,
        )
        return [_state(name, described) for name, described in sorted(found.items())]


def _state(name: str, described: ConsumerGroupDescription) -> GroupState:
    return GroupState(
        name=name,
        state=described.state.name.lower().replace("_", " "),
        members=tuple(
            GroupMember(
                id=member.member_id,
                client=member.client_id,
                host=member.host,
                instance_id=member.group_instance_id,
                partitions=tuple(
                    sorted((at.topic, at.partition) for at in member.assignment.topic_partitions)
                ),
            )
            for member in described.members
        ),
    )
