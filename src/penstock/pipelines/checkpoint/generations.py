"""The generations of a pipeline: its checkpoints, of which one is current.

A rebuild computes the next generation beside the current one and then switches over. A small file,
replaced as a whole, says how far that is, so that it can be killed at any moment::

    resting ──▶ computing ──▶ switching ──▶ resting, something left to tidy ──▶ resting
                 the old one runs │ nobody runs        the new one runs

While it says ``computing`` the current generation is the old one, and nothing of it was touched.
``switching`` is written before the old one is fenced: a run looks at the file *after* it has taken
over, so one that comes later sees it and stops.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from penstock.errors import ConfigurationError, FencedError
from penstock.pipelines.checkpoint.files import Files

__all__ = ["Generations", "Standing"]

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Which generation is current, which one is being made, and which are to be removed."""

    current: int = 0
    step: Literal["resting", "computing", "switching"] = "resting"
    next: int = 0
    """The generation that is being made."""
    program: str = ""
    """A fingerprint of the program that makes it."""
    left: tuple[int, ...] = ()
    """Generations that are no longer used and must still be removed."""

    def computing(self, program: str) -> "Standing":
        """Return the standing after a generation was begun; an unfinished one is abandoned."""
        left = (*self.left, self.next) if self.step == "computing" else self.left
        number = max(self.current, self.next, *left, 0) + 1
        return replace(self, step="computing", next=number, program=program, left=left)

    def switching(self) -> "Standing":
        """Return the standing after the next generation is complete."""
        return replace(self, step="switching")

    def switched(self) -> "Standing":
        """Return the standing when the next generation has become the current one."""
        return Standing(current=self.next, left=(*self.left, self.current), next=self.next)

    def tidied(self) -> "Standing":
        """Return the standing when nothing is left of other generations."""
        return replace(self, left=())


class Generations:
    """The generations of one pipeline; the first has the directory of the pipeline's name."""

    def __init__(self, files: Files, base: str, *, name: str) -> None:
        self._files = files
        self._base = base
        self._name = name
        # No part has such a sign in its name.
        self._file = f"{base}~generations"

    def checkpoint(self, number: int) -> str:
        """Return the directory of a generation."""
        return f"{self._base}~{number}" if number else self._base

    def read(self) -> Standing:
        """Return the current standing."""
        directory, _, name = self._file.rpartition("/")
        if name not in self._files.names(directory):
            return Standing()
        found = json.loads(self._files.text(self._file))
        if found.pop("format") != _FORMAT:
            raise ConfigurationError(
                f"{self._name}: {self._file} was written by a newer Penstock",
                code="checkpoint.newer",
                hint="use that release",
            )
        return Standing(**found | {"left": tuple(found["left"])})

    def write(self, standing: Standing) -> None:
        """Store the standing durably."""
        fields = {each: getattr(standing, each) for each in Standing.__slots__}
        self._files.write(self._file, json.dumps({"format": _FORMAT} | fields, indent=1))

    def running(self) -> "tuple[str, Callable[[], None]]":
        """Return the current checkpoint, and a check that raises FencedError later.

        FencedError ``pipeline.rebuilt`` while a rebuild is switching over.
        """
        current = self.read().current

        def check() -> None:
            standing = self.read()
            if standing.step == "switching":
                raise self._fenced("a rebuild is switching over", hint="start it again after that")
            if standing.current != current:
                raise self._fenced("it was rebuilt", hint="start it again: it continues from there")

        check()
        return self.checkpoint(current), check

    def _fenced(self, why: str, *, hint: str) -> FencedError:
        return FencedError(
            f"pipeline {self._name!r} stopped: {why}", code="pipeline.rebuilt", hint=hint
        )
