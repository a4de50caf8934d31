"""How far the inputs of a task had been read when its state was committed.

The group keeps the offsets that a task goes on from, and forgets those of a service that was
stopped for longer than the cluster's ``offsets.retention.minutes``. So the state keeps them as
well, in the same commit. Where the group has forgotten, the state goes on from its own; where the
two say different things the state is not that of the offsets, and the task is refused.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.graph.parts import Delivery
from penstock.errors import ConfigurationError
from penstock.services.usererrors import LOG

__all__ = ["Input", "dump_positions", "find_positions", "says_offsets_first", "stated_positions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input topic as it is: its identity, how it is cut, and where it begins."""

    id: str
    partitions: int
    low: int = 0


class _Position(msgspec.Struct, array_like=True):
    """One input as it was at the commit, and whether its offsets are committed before the work."""

    offset: int
    id: str
    partitions: int
    offsets_first: bool = False


class _Kept(msgspec.Struct):
    """All inputs as they were at the commit, those that were read before it included."""

    inputs: dict[str, _Position]
    owner: str = ""
    """Application and service: the dots in their names do not say where the one ends."""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Kept)


def dump_positions(
    positions: Offsets,
    inputs: Mapping[str, Input],
    *,
    owner: str,
    delivery: Delivery,
    former: bytes | None = None,
) -> bytes:
    """Return the positions of a task as its changelog keeps them.

    Inputs of the ``former`` note that are read no more are kept: they may be read again.
    """
    first = delivery == "at_most_once"
    kept = {} if former is None else _DECODER.decode(former).inputs
    for (topic, _), offset in positions.items():
        if topic in inputs:
            now = inputs[topic]
            kept[topic] = _Position(offset, now.id, now.partitions, offsets_first=first)
    return _ENCODER.encode(_Kept(kept, owner))


def says_offsets_first(kept: bytes | None, topics: Iterable[str]) -> bool:
    """Return whether a note says of all these inputs that the group may be ahead of the state."""
    known = {} if kept is None else _DECODER.decode(kept).inputs
    return all(topic in known and known[topic].offsets_first for topic in topics)


def stated_positions(kept: bytes | None, topics: Iterable[str], *, number: int) -> Offsets | None:
    """Return how far a task had read these topics when it wrote a note; None: it says not all."""
    known = {} if kept is None else _DECODER.decode(kept).inputs
    wanted = list(topics)
    if any(topic not in known for topic in wanted):
        return None
    return {(topic, number): known[topic].offset for topic in wanted}


def find_positions(
    starts: Offsets,
    kept: bytes | None,
    *,
    inputs: Mapping[str, Input],
    unread: Collection[Partition],
    group: str,
    owner: str,
) -> dict[Partition, int]:
    """Return where a task goes on: at the group's offsets, or at those that its state has kept.

    ``unread`` are the partitions that the group has no offset for.

    ConfigurationError ``state.offsets`` where group and state contradict each other, and
    ``state.repartitioned`` where an input has another number of partitions by now, and
    ``state.owner`` where another service, or a service of another application, made the state, and
    ``input.recreated`` where an input was made anew while it was read.
    """
    found = dict(starts)
    if kept is None:
        return found
    known = _DECODER.decode(kept)
    if known.owner not in {"", owner}:
        raise _another(known.owner, owner, group=group)
    for partition, start in starts.items():
        topic, _ = partition
        was, now = known.inputs.get(topic), inputs.get(topic)
        if was is None or now is None:
            continue
        if was.id != now.id:
            if partition not in unread and start == was.offset:
                raise _passed_over(partition, group=group, offset=start)
            LOG.warning("%s: %s was made anew: it is read from offset %s", group, topic, start)
            continue
        if was.partitions != now.partitions:
            raise _repartitioned(topic, was.partitions, now.partitions)
        if partition in unread:
            LOG.warning(
                "%s has no offset for %s[%s] any more: it goes on from %s, where its state stands",
                group,
                *partition,
                was.offset,
            )
            found[partition] = was.offset
            continue
        skipped = was.offset < min(start, now.low)  # what retention deleted was left out
        ahead = was.offsets_first and start > was.offset
        if start != was.offset and not (skipped or ahead):
            raise _contradiction(partition, group=group, start=start, state=was.offset)
    return found


def _contradiction(
    partition: Partition, *, group: str, start: int, state: int
) -> ConfigurationError:
    topic, number = partition
    return ConfigurationError(
        f"{topic}[{number}]: group {group} is at offset {start}, its state at offset {state}",
        code="state.offsets",
        detail="they are committed together: somebody moved the group, or it ran without its state",
        hint=f"penstock reset rebuilds the state from the input, and writes the outputs again; or "
        f"move the group back to {state}",
    )


def _passed_over(partition: Partition, *, group: str, offset: int) -> ConfigurationError:
    """Return the error of an input that was made anew under a worker, which read on in it."""
    topic, number = partition
    return ConfigurationError(
        f"{topic} was deleted and made anew while {group} was reading it: it stands at offset "
        f"{offset} of {topic}[{number}], and passed over records before it",
        code="input.recreated",
        detail="the offsets of the group and its state are those of the old topic",
        hint="penstock reset rebuilds the state from the input, and writes the outputs again",
    )


def _repartitioned(topic: str, was: int, now: int) -> ConfigurationError:
    return ConfigurationError(
        f"{topic} has {now} partitions, and the state was made when it had {was}",
        code="state.repartitioned",
        detail="its keys are in other partitions now, and their state is not",
        hint="penstock reset rebuilds the state from the input, and writes the outputs again",
    )


def _another(known: str, owner: str, *, group: str) -> ConfigurationError:
    (its_app, _, its_name), (app, _, name) = known.partition("/"), owner.partition("/")
    return ConfigurationError(
        f"the state of {group} is that of service {its_name!r} of application {its_app!r}, not of "
        f"{name!r} of {app!r}",
        code="state.owner",
        detail="with a dot between application and service the two have the same name on the log",
        hint="give the application or the service another name",
    )
