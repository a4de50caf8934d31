"""Input that retention deleted before a pipeline has read it: found, named, and stepped over."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.batches import Offsets

__all__ = ["Gap", "Skipped", "find_gaps", "stopped_at"]


class Gap(NamedTuple):
    """Offsets of a partition that a pipeline wants next, and that retention has deleted."""

    topic: str
    partition: int
    wanted: int
    there: int
    """The first offset that is still on the log."""

    @property
    def offsets(self) -> int:
        """How many offsets are gone. At most this many records are lost."""
        return self.there - self.wanted

    def __str__(self) -> str:
        """Return where the gap is, in words."""
        where = f"{self.topic}[{self.partition}]"
        return f"{where} wants offset {self.wanted}, the log begins at {self.there}"


class Skipped:
    """The offsets that a pipeline has stepped over, each counted once, however often it starts."""

    def __init__(self) -> None:
        self.offsets = 0
        self._reached: Offsets = {}

    def add(self, gap: Gap) -> int:
        """Count a gap; return how many of its offsets were not counted before."""
        at = gap.topic, gap.partition
        fresh = gap.there - max(gap.wanted, self._reached.get(at, 0))
        self._reached[at] = gap.there
        self.offsets += fresh
        return fresh


def find_gaps(reached: Offsets, topics: Topics, names: Iterable[str]) -> list[Gap]:
    """Return where the log begins behind the offsets that a pipeline has reached."""
    return [
        Gap(topic, number, reached[topic, number], low)
        for topic in names
        for number, (low, _) in sorted(topics.ends(topic).items())
        if reached.get((topic, number), low) < low
    ]


def stopped_at(gaps: Sequence[Gap], pipeline: str) -> ConfigurationError:
    """Return the error that names every gap."""
    gone = sum(gap.offsets for gap in gaps)
    return ConfigurationError(
        f"pipeline {pipeline!r} stopped: {gone:,} offsets of its input were trimmed unread",
        code="offset.trimmed",
        detail="; ".join(map(str, gaps)),
        hint="keep records longer; to continue without them: --set spark.on_trimmed=skip",
    )
