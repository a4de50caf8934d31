"""Sees that the topics of a service stay what they were while its worker runs.

The client of Kafka does not tell. Of a topic that was deleted and made anew it reads on at the old
offsets, past records that nobody has handled; partitions that were added are unknown to it for
minutes; and what is sent to a topic that is gone waits as if the broker did not answer.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import ConfigurationError, PenstockError, TransientError

__all__ = ["LOOK_SECONDS", "Shapes", "TopicWatch", "topics_of"]

LOOK_SECONDS = 5.0
"""How often it is looked."""
Shapes = Mapping[str, tuple[str, int]]
"""The id and the number of partitions of topics; those that do not exist are left out."""


def topics_of(graph: Graph, service: Service) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the topics that a service reads, and of those that it writes."""
    reads = frozenset(data.topic.name for data in service.reads)
    writes = {data.topic.name for data in service.writes} | {graph.dead_letters.name}
    if service.keeps_state:
        writes.add(graph.changelog(service).name)
    return reads, frozenset(writes) - reads


@dataclass(slots=True)
class TopicWatch:
    """Looks at the topics of one service; ``shapes`` says what there is now."""

    group: str
    reads: frozenset[str]
    writes: frozenset[str]
    keeps_state: bool
    shapes: Callable[[Collection[str]], Shapes]
    lost: str = ""
    """Which topics are gone, in words; empty: none."""
    change: PenstockError | None = None
    """What the worker must not go on after."""
    _known: dict[str, tuple[str, int]] = field(default_factory=dict)
    _looked_at: float | None = None

    def look(self, now: float) -> None:
        """Look, where it is time to; whatever cannot be asked now is asked the next time."""
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            found = self.shapes(self.reads | self.writes)
        except PenstockError:  # the worker itself says what is wrong with the cluster
            return
        gone = sorted(self._known.keys() - found.keys())
        self.lost = _gone(gone) if gone else ""
        for topic in sorted(self.reads & found.keys()):
            was, now_is = self._known.get(topic), found[topic]
            if was is not None and was != now_is and self.change is None:
                self.change = self._changed(topic, was, now_is)
        self._known |= found

    def require_same(self) -> None:
        """Raise what the worker must not go on after, once."""
        change, self.change = self.change, None
        if change is not None:
            raise change

    def _changed(self, topic: str, was: tuple[str, int], now: tuple[str, int]) -> PenstockError:
        if was[0] != now[0]:
            return ConfigurationError(
                f"{topic} was deleted and made anew while {self.group} was reading it",
                code="input.recreated",
                detail="how much of the new one was passed over is not known",
                hint="penstock reset reads the input from its beginning, and writes the outputs "
                "again",
            )
        text = f"{topic} has {now[1]} partitions, and had {was[1]} when {self.group} began"
        if not self.keeps_state:  # it joins again, and reads the new ones as well
            return TransientError(text, code="input.grown")
        return ConfigurationError(
            text,
            code="state.repartitioned",
            detail="its keys are in other partitions now, and their state is not",
            hint="penstock reset rebuilds the state from the input, and writes the outputs again",
        )


def _gone(topics: Collection[str]) -> str:
    names = ", ".join(topics)
    return f"there is no topic {names} any more: penstock topics apply puts it back"
