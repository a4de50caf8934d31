"""The last answers, in memory: those of each partition from some offset on, without a gap."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from penstock.serving.http.problems import Problem

__all__ = ["ANSWER_BYTES", "Failure", "Window"]

ANSWER_BYTES = 300
"""What an answer costs beside its value, about."""


class Failure(bytes):
    """In the place of an answer: the code of why there will be none. The service failed."""

    __slots__ = ()

    def problem(self) -> Problem:
        """Return what whoever asked is told: asked again, the service would fail again."""
        return Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "answer.failed",
            "the service failed on this question: there is no answer to it",
            reason=self.decode("utf-8", "replace"),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    partition: int
    offset: int
    value: bytes


class Window:
    """Answers by the ids of their questions. Of two answers to one question the first counts.

    The oldest ones leave when there are more than ``most`` bytes; the window then begins later.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._size = 0
        self.floors: dict[int, int] = {}
        """For each partition: every answer from this offset on is here, as far as was read."""

    def begin(self, floors: Mapping[int, int]) -> None:
        """Begin anew at these offsets."""
        self._kept.clear()
        self._size = 0
        self.floors = dict(floors)

    def add(self, id: bytes, partition: int, offset: int, value: bytes) -> bool:  # noqa: A002
        """Take the next answer of a partition; return whether it is the first to its question."""
        if id in self._kept:
            return False
        self._kept[id] = _Kept(partition, offset, value)
        self._size += len(value) + ANSWER_BYTES
        while self._size > self._most and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.value) + ANSWER_BYTES
            self.floors[oldest.partition] = oldest.offset + 1
        return True

    def get(self, id: bytes) -> bytes | None:  # noqa: A002
        """Return an answer; None: it is not here."""
        kept = self._kept.get(id)
        return None if kept is None else kept.value

    def covers(self, partition: int, offset: int) -> bool:
        """Return whether an answer that does not stand before an offset would be here."""
        floor = self.floors.get(partition)
        return floor is not None and floor <= offset
