"""A random application in memory, killed at every step: what it tells must be what it tells unhurt."""

import random
import runpy
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.timing.queue import EVENT_TIME_KEY
from penstock.testing.clock import ManualClock
from penstock.testing.engine import MemoryEngine
from penstock.testing.memorylog import MemoryLog

HERE = Path(__file__).parent
kit = SimpleNamespace(**runpy.run_path(str(HERE / "randomapp.py")))

SURVIVES = 0.6
DEATHS_A_MOVE = 3
"""So often it may be killed before a move of the test is done."""


class Crash(BaseException):
    """The death of a process, in a test of one process."""


class Disk:
    """Directories for the states of a service, which live on when its process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Any] = []

    def of(self, service: Service) -> "Disk | None":
        if not service.keeps_state:
            return None
        found = Disk(self._path / service.name)
        found._open = self._open  # whoever dies lets go of everything
        return found

    def shelf(self, number: int) -> Any:
        from penstock.services.state.shelf import open_shelf

        self._open.append(open_shelf(self._path / str(number), identity=""))
        return self._open[-1]

    def die(self) -> None:
        for shelf in self._open:
            if not shelf._closed:
                shelf.close()
        self._open.clear()


class Run:
    """One application on one log, with a clock of the test."""

    def __init__(
        self,
        plan: Any,
        *,
        deaths: random.Random | None,
        auto_commit: bool = True,
        name: str = "demo",
        away_seconds: float = 40,
        disk: Disk | None = None,
    ) -> None:
        self.disk = disk
        self.chance = deaths
        self.deaths = 0
        self._fuse: int | None = None
        self.auto_commit = auto_commit
        self.clock = ManualClock(kit.EPOCH)
        away_until = kit.EPOCH + timedelta(seconds=away_seconds)
        probe = kit.Probe(away_until=away_until, hit=self._hit)
        self.made = kit.RandomApp(plan, name, probe=probe)
        self.graph = verified(self.made.app.graph)
        self.log = MemoryLog(self.graph.topics(), clock=self.clock)
        self.engine = MemoryEngine(
            self.graph,
            self.log,
            clock=self.clock,
            auto_commit=auto_commit,
            at=self._hit,
            disk=lambda service: None if disk is None else disk.of(service),
        )
        self._codec = JsonCodec(self.made.inputs["left"].record)
        self.move(self.engine.restart)

    def pipe(self, signs: list[tuple[str, Any]]) -> None:
        for stream, sign in signs:
            topic = self.made.inputs[stream].topic.name
            self.log.append(topic, key=self._codec.key(sign), value=self._codec.encode(sign))
        self.move(self.engine.flow)

    def pass_time(self, seconds: float) -> None:
        """Move the clock on, stopping wherever something is due."""
        target_at = self.clock.now_at + timedelta(seconds=seconds)
        while (wakes_at := self.engine.wakes_at()) and self.clock.now_at < wakes_at <= target_at:
            self.clock.advance(wakes_at - self.clock.now_at)
            self.move(self.engine.flow)
        self.clock.advance(target_at - self.clock.now_at)
        self.move(self.engine.flow)

    def commit(self) -> None:
        if self.disk is not None:
            self._snapshot()
        if not self.auto_commit:
            self.move(lambda: self.engine.commit(None))
        self.move(self.engine.flow)

    def move(self, call: Any) -> None:
        """Do something, in spite of all deaths on the way."""
        for attempt in range(DEATHS_A_MOVE + 1):
            self._fuse = self._drawn() if attempt < DEATHS_A_MOVE else None
            try:
                if attempt:
                    self.engine.restart()
                call()
            except Crash:
                self.deaths += 1
                self._fuse = None
                self.engine.crash(None)
                if self.disk is not None:
                    self.disk.die()
            else:
                self._fuse = None
                return
        raise AssertionError("a move without a death does not end in one")

    def _drawn(self) -> int | None:
        """Return after how many steps it dies; None: it does not."""
        if self.chance is None or self.chance.random() < SURVIVES:
            return None
        return self.chance.choice([1, 2, 3, 5, 8, 13, 30, 80])

    def _hit(self, point: str) -> None:
        if self._fuse is not None:
            self._fuse -= 1
            if self._fuse <= 0:
                self._fuse = None
                raise Crash(point)

    def _snapshot(self) -> None:
        """Tell every shelf where its changelog ends, as a worker does now and then."""
        for tasks in self.engine._tasks.values():
            for task in tasks:
                if task.shelf is not None:
                    task.snapshot(len(self.log.read((task.logs[0], task.number))))

    def told(self) -> dict[str, Any]:
        """Return everything that others can see, and what the services remember."""
        return self.shown() | self._remembered()

    def shown(self) -> dict[str, Any]:
        """Return everything that others can see."""
        return kit.shown(self.made, self._records)

    def _records(self, topic: str) -> Iterator[Any]:
        for partition in self.log.partitions(topic):
            yield from self.log.read(partition)

    def _remembered(self) -> dict[str, Any]:
        """Return what the changelogs hold in the end; what says when it was written is left out."""
        found = {}
        clocked = self.made.plan.clocked
        for part in self.graph.parts:
            if not isinstance(part, Service) or not part.keeps_state:
                continue
            if part.aggregation is not None and not clocked:
                continue
            if part.operator is not None:  # how its machine lies in the store depends on commits
                continue
            for partition in self.log.partitions(self.graph.changelog(part).name):
                for key, value in {r.key(): r.value() for r in self.log.read(partition)}.items():
                    timely = key == EVENT_TIME_KEY or key.startswith((b"fresh\x00", b"brief\x00"))
                    if value is not None and key != MARKER_KEY and (clocked or not timely):
                        found[f"{partition} {key!r}"] = value
        return found


def differences(plan: Any, *, number: int = 40, disk: Disk | None = None) -> tuple[list[str], int]:
    """Return how a run with deaths differs from one without, and how many deaths there were.

    With a disk, the one with deaths has its state there, the other in memory.
    """
    calm = _played(plan, None, number)
    hurt = _played(plan, random.Random(f"deaths {plan.seed}"), number, disk)
    expected, found = calm.told(), hurt.told()
    return [
        f"{place}:\n   unhurt {expected.get(place)}\n   hurt   {found.get(place)}"
        for place in sorted(expected.keys() | found.keys())
        if expected.get(place) != found.get(place)
    ], hurt.deaths


def _played(plan: Any, deaths: random.Random | None, number: int, disk: Disk | None = None) -> Run:
    # What goes by the clock is committed before the clock moves on: else it would be done later.
    run = Run(plan, deaths=deaths, auto_commit=plan.clocked or deaths is None, disk=disk)
    chance = random.Random(f"moves {plan.seed}")
    signs = plan.signs(number=number)
    while signs:
        size = chance.randint(1, 9)
        run.pipe(signs[:size])
        signs = signs[size:]
        if chance.random() < 0.3:
            run.pass_time(chance.choice([0.5, 3, 10, 50, 90]))
        if chance.random() < 0.4:
            run.commit()
    run.chance = None
    for _ in range(8):
        run.commit()
        run.pass_time(200)
    run.commit()
    if disk is not None:
        disk.die()
    return run
