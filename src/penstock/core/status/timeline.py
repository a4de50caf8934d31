"""What happened while parts ran: told from one look at them to the next, the latest kept."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from penstock.core.status.status import PartStatus, RunStatus

__all__ = ["KEPT", "Happening", "Kind", "Timeline"]

KEPT = 500
"""How many happenings are kept."""
_LETTERS_SECONDS = 30.0
"""Dead letters of a part are told at most once in this time."""
_MOVES = "partitions"
_PASSING = frozenset({"starting", "restarting"})
"""States that come after something that is told: the death of a process, or the run's begin."""

Kind = Literal["well", "unwell", "died", "letters", "moved", "run", "said"]


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; numbers go on without a gap."""

    number: int
    at: float
    """Seconds since the epoch."""
    kind: Kind
    text: str
    part: str = ""
    """The key of the part that it happened to; empty: to the whole."""


class Timeline:
    """Compares what is with what was, and keeps the last `KEPT` differences."""

    def __init__(self) -> None:
        self._kept: deque[Happening] = deque(maxlen=KEPT)
        self._number = 0
        self._before: dict[str, PartStatus] = {}
        self._runs: dict[tuple[str, str, int], str] = {}
        self._letters: dict[str, tuple[float, int]] = {}
        """When dead letters of a part were last told of, and how many there were."""

    def tell(self, at: float, text: str, *, kind: Kind = "said", part: str = "") -> None:
        """Take note of something."""
        self._number += 1
        self._kept.append(Happening(number=self._number, at=at, kind=kind, text=text, part=part))

    def after(self, number: int = 0) -> list[Happening]:
        """Return what happened after the happening of this number, the oldest first."""
        return [each for each in self._kept if each.number > number]

    def take(self, at: float, runs: Sequence[RunStatus], parts: Mapping[str, PartStatus]) -> None:
        """Look at everything that runs; the parts by their keys."""
        self._take_runs(at, runs)
        for key, part in parts.items():
            before = self._before.get(key)
            for kind, text in _changes(before, part):
                self.tell(at, text, kind=kind, part=key)
            self._take_letters(at, key, part.counts.dead_lettered)
        self._before = dict(parts)
        self._letters = {key: found for key, found in self._letters.items() if key in parts}

    def _take_runs(self, at: float, runs: Sequence[RunStatus]) -> None:
        now = {
            (run.app, run.command, run.pid): f"penstock {run.command} of {run.app}" for run in runs
        }
        for key in now.keys() - self._runs.keys():
            self.tell(at, f"{now[key]} runs, process {key[2]}", kind="run")
        for key in self._runs.keys() - now.keys():
            self.tell(at, f"{self._runs[key]} has ended, process {key[2]}", kind="run")
        self._runs = now

    def _take_letters(self, at: float, key: str, count: int) -> None:
        told_at, told = self._letters.setdefault(key, (-_LETTERS_SECONDS, count))
        if count > told and at - told_at >= _LETTERS_SECONDS:
            more = count - told
            self._letters[key] = (at, count)
            text = f"{more:,} dead letter{'s' if more > 1 else ''}, {count:,} in all"
            self.tell(at, text, kind="letters", part=key)


def _changes(before: PartStatus | None, part: PartStatus) -> Iterator[tuple[Kind, str]]:
    if before is not None and part.restarts > before.restarts:
        yield "died", f"died: {part.detail.get('last end') or part.why or 'no reason is known'}"
    was = (before.state, before.reason) if before is not None else ("starting", "")
    if part.state in _PASSING or (part.state, part.reason) == was:
        pass
    elif part.healthy:
        if part.state != was[0]:
            yield "well", "runs" if part.state == "running" else part.state
    else:
        yield "unwell", f"{part.state}: {part.why}" if part.why else part.state
    if before is not None and part.state == before.state == "running":
        moved = part.detail.get(_MOVES)
        if moved is not None and moved != before.detail.get(_MOVES):
            yield "moved", f"now has partitions {moved}"
