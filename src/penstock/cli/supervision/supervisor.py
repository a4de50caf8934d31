"""Keeps the processes of an application alive, and ends them in order."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from penstock.cli.supervision.board import Board
from penstock.cli.supervision.plan import Unit
from penstock.core.backoff import Backoff

__all__ = ["Process", "Supervisor"]

_LOOK_SECONDS = 0.05


class Process(Protocol):
    """A running process of one unit."""

    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs; that of a signal is its number below zero."""

    def reason(self) -> str:
        """Say why it ended, in a few words."""

    def terminate(self) -> None:
        """Ask it to end cleanly."""

    def kill(self) -> None:
        """End it and everything it started, at once."""


@dataclass(slots=True)
class _Member:
    unit: Unit
    delays: Iterator[float]
    process: Process | None = None
    started_at: float = 0.0
    due_at: float | None = field(default=None)
    """When to start it again; None while it runs, or has ended."""
    trouble: str = ""
    """The last reported reason why it cannot be supervised."""


class Supervisor:
    """Starts a process for each unit and again when one dies, with growing waits.

    A process that ends with exit code 0 has done its work and is not started again. Nothing here
    waits but :meth:`stop`; whoever runs it calls :meth:`look` many times a second.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        *,
        start: Callable[[Unit], Process],
        board: Board,
        note: Callable[[str], None],
        backoff: Backoff,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backoff = backoff
        self._members = [_Member(unit, backoff.delays(), due_at=clock()) for unit in units]
        self._start = start
        self._board = board
        self._note = note
        self._clock = clock

    @property
    def all_ended(self) -> bool:
        """Whether every process has done its work."""
        return all(member.process is None and member.due_at is None for member in self._members)

    def look(self) -> None:
        """Notice what has ended, and start what is due."""
        for member in self._members:
            try:
                self._look_after(member)
                member.trouble = ""
            except OSError as error:
                # No file, no memory, no process to be had: that may pass, and others go on.
                if member.trouble != str(error):
                    member.trouble = str(error)
                    self._note(f"{member.unit.name} cannot be supervised at the moment: {error}")

    def _look_after(self, member: _Member) -> None:
        code = member.process.exit_code() if member.process else None
        if member.process is not None and code is not None:
            self._ended(member, member.process, code)
        if member.due_at is not None and self._clock() >= member.due_at:
            member.due_at, member.started_at = None, self._clock()
            self._board.started(member.unit.name)
            try:
                member.process = self._start(member.unit)
            except OSError as error:
                self._again(member, f"it could not be started: {error}")

    def _ended(self, member: _Member, process: Process, code: int) -> None:
        # What it started may have outlived it.
        process.kill()
        member.process = None
        if code == 0:
            self._board.ended(member.unit.name)
            self._note(f"{member.unit.name} has ended; it has nothing more to do")
            return
        self._again(member, process.reason())

    def _again(self, member: _Member, reason: str) -> None:
        if self._backoff.is_over(self._clock() - member.started_at):
            member.delays = self._backoff.delays()
        wait = next(member.delays)
        member.due_at = self._clock() + wait
        self._board.died(member.unit.name, reason)
        self._note(f"{member.unit.name} died ({reason}); starting it again in {wait:g}s")

    def stop(
        self, kinds: Sequence[str], *, grace: timedelta, tick: Callable[[], None] = lambda: None
    ) -> None:
        """End the processes of these kinds, in parallel; those that do not end in time are killed.

        ``tick`` is called while waiting.
        """
        members = [member for member in self._members if member.unit.kind in kinds]
        for member in members:
            member.due_at = None
            if member.process is not None:
                member.process.terminate()
        deadline = self._clock() + grace.total_seconds()
        while (left := [member for member in members if _runs(member)]) and (
            self._clock() < deadline
        ):
            tick()
            time.sleep(_LOOK_SECONDS)
        for member in members:
            if member.process is not None and (_exit_code(member.process) or 0) > 0:
                self._note(f"{member.unit.name} ended with a failure ({member.process.reason()})")
        for member in left:
            self._note(f"{member.unit.name} did not end within {grace.total_seconds():g}s: killed")
        self._kill(members)

    def kill(self) -> None:
        """End everything at once."""
        self._kill(self._members)

    def _kill(self, members: Sequence[_Member]) -> None:
        for member in members:
            try:
                if member.process is not None:
                    member.process.kill()
            except OSError as error:
                # It has a lifeline to this process, and ends with it.
                self._note(f"{member.unit.name} ends with this process: {error}")
            member.process, member.due_at = None, None


def _runs(member: _Member) -> bool:
    return member.process is not None and _exit_code(member.process) is None


def _exit_code(process: Process) -> int | None:
    """Return the exit code of a process; None where it runs, or that cannot be told now."""
    try:
        return process.exit_code()
    except OSError:
        return None
