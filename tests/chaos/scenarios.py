"""What can happen to a service, each a seeded story that ends in the both-ways check.

The numbers are those of the table of faults. A scenario makes its faults while records flow, then
stops making them; the service must have handled everything within the time for healing, and the
checker must find nothing.

Long because each fault is a short story of its own, and they are compared by reading them.
"""

import os
import runpy
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

HERE = Path(__file__).parent
kit = SimpleNamespace(**runpy.run_path(str(HERE / "arena.py")))
disks = SimpleNamespace(**runpy.run_path(str(HERE / "smalldisk.py")))
network = SimpleNamespace(**runpy.run_path(str(HERE / "network.py")))
latereplies = SimpleNamespace(**runpy.run_path(str(HERE / "latereplies.py")))
hotkey = SimpleNamespace(**runpy.run_path(str(HERE / "hotkey.py")))
logfaults = SimpleNamespace(**runpy.run_path(str(HERE / "logfaults.py")))
Unavailable = network.Unavailable

Scale = float
"""1: as the promise says; less: as long as a test may take."""


def random_death(arena: Any, scale: Scale) -> dict[str, object]:
    """F2: 300,000 records, three workers, one of them killed every few seconds."""
    kills = 0
    for _ in range(3):
        arena.start()
    seconds = 60 * scale
    with arena.feeding(round(300_000 * scale), seconds=seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            arena.pause(3 * max(scale, 0.5), 8 * max(scale, 0.5))
            arena.chance.choice(arena.running()).kill()
            kills += 1
            arena.start()
    return {"kills": kills}


def every_step(arena: Any, scale: Scale) -> dict[str, object]:
    """F1: the worker dies at every step in turn; the next one goes on."""
    points = list(kit.workers.FAILPOINTS)
    arena.chance.shuffle(points)
    if scale < 1:
        points = points[:3]
    arena.feed(2_000)
    first = arena.start()
    arena.heal(within=kit.PATIENCE)
    first.kill()
    with arena.feeding(round(4_000 * len(points)), seconds=4.0 * len(points)):
        for point in points:
            often = {"after produce": 300, "in restore": 40, "after poll": 3}.get(point, 2)
            hits = 1 if point == "in revoke" else arena.chance.randint(1, often)
            worker = arena.start(FAILPOINT=f"{point}:{hits}")
            if point == "in revoke":
                kit.eventually(
                    lambda found=worker: any(
                        "[" in report.detail.get("partitions", "") for report in found.reports
                    ),
                    within=kit.PATIENCE,
                    what="it has partitions to be revoked",
                )
                worker.send(signal.SIGTERM)
            kit.eventually(
                lambda found=worker: not found.alive, within=kit.PATIENCE, what=f"death {point}"
            )
    arena.start()
    return {"deaths": ", ".join(points)}


def rolling_stop(arena: Any, scale: Scale) -> dict[str, object]:
    """F3: three workers, each stopped and replaced in turn: clean, in time, nothing done again."""
    for _ in range(3):
        arena.start()
    rounds = 2 if scale >= 1 else 1
    received = []
    with arena.feeding(round(60_000 * scale), seconds=20.0 * rounds * max(scale, 0.5)):
        for _ in range(3 * rounds):
            arena.pause(1, 3)
            received.append(_stopped(arena.running()[0]))
            arena.start()
    arena.heal()
    received += [_stopped(worker) for worker in arena.running()]
    assert all(counts.in_flight == 0 and counts.balanced for counts in received)
    total = sum(counts.received for counts in received)
    assert total == arena.written, f"{total} handled, {arena.written} written: some done again"
    return {"stops": len(received)}


def _stopped(worker: Any) -> Any:
    """Stop a worker once it is up; return what it has counted."""
    kit.eventually(lambda: worker.reports, within=kit.PATIENCE, what="it is up")
    began = time.monotonic()
    code = worker.stop()
    assert code == 0, f"a stop that is asked for ends with 0, not with {code}"
    assert time.monotonic() - began < 10, "in time"
    return worker.reports[-1].counts


def zombie(arena: Any, scale: Scale) -> dict[str, object]:
    """F4: a worker sleeps until its partitions are another's, and wakes up."""
    for _ in range(2):
        arena.start()
    naps = 3 if scale >= 1 else 1
    with arena.feeding(round(60_000 * max(scale, 0.3)), seconds=18.0 * naps):
        for _ in range(naps):
            arena.pause(3, 4)
            worker = arena.chance.choice(arena.running())
            worker.send(signal.SIGSTOP)
            arena.pause(7, 9)
            worker.send(signal.SIGCONT)
            arena.pause(2, 4)
    return {"naps": naps}


def broker_pause(arena: Any, scale: Scale) -> dict[str, object]:
    """F5: the broker stands still, for less and for more than a session."""
    for _ in range(2):
        arena.start()
    pauses = (5.0, 40.0) if scale >= 1 else (5.0,)
    for seconds in pauses:
        arena.feed(round(20_000 * max(scale, 0.5)))
        arena.pause(0.1, 2)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in arena.broker.pids:
                os.kill(pid, number)
            if number == signal.SIGSTOP:
                arena.pause(seconds, seconds)
    return {"pauses": ", ".join(f"{seconds:g} s" for seconds in pauses)}


def broker_crash(arena: Any, scale: Scale) -> dict[str, object]:
    """F6: the broker is killed and comes back."""
    for _ in range(2):
        arena.start()
    crashes = 2 if scale >= 1 else 1
    for _ in range(crashes):
        arena.feed(round(20_000 * max(scale, 0.5)))
        arena.pause(0.1, 2)
        arena.broker.kill()
        arena.pause(1, 3)
        arena.broker.ensure()
    return {"crashes": crashes}


def leader_crash(arena: Any, scale: Scale) -> dict[str, object]:
    """F7: three brokers, one of them killed while records flow, and back."""
    for _ in range(2):
        arena.start()
    crashes = 3 if scale >= 1 else 1
    with arena.feeding(round(60_000 * max(scale, 0.3)), seconds=20.0 * crashes * max(scale, 0.5)):
        for _ in range(crashes):
            arena.pause(3, 6)
            arena.broker.kill(arena.chance.randrange(3))
            arena.pause(3, 6)
            arena.broker.ensure()
    return {"crashes": crashes}


def cut_off(arena: Any, scale: Scale) -> dict[str, object]:
    """F13: a worker loses its network for longer than a session, goes on, and comes back."""
    cuts = (6.0, 60.0) if scale >= 1 else (6.0,)
    in_flight = 0
    with network.linked() as link:
        worker = arena.start(inside=network.inside(link.namespace))
        other = arena.start()
        both = lambda: worker.partitions and other.partitions  # noqa: E731
        with arena.feeding(round(40_000 * len(cuts)), seconds=15 * len(cuts) + sum(cuts)):
            for seconds in cuts:
                kit.eventually(both, within=kit.PATIENCE, what="both have partitions")
                arena.pause(1, 3)
                told = _cut(arena, link, seconds, worker=worker, other=other)
                in_flight += max(report.counts.in_flight for report in told)
                kit.eventually(both, within=kit.PATIENCE, what="it has partitions again")
        healed = arena.heal(within=60)
        arena.close()
    return {
        "cuts": ", ".join(f"{seconds:g} s" for seconds in cuts),
        "in flight": in_flight,
        "healed in": f"{healed:.1f} s",
    }


def _cut(arena: Any, link: Any, seconds: float, *, worker: Any, other: Any) -> list[Any]:
    """Cut a worker off until another has its partitions, and longer; return its reports."""
    before, until = len(worker.reports), time.monotonic() + seconds
    link.cut()
    everything = lambda: other.partitions == kit.workers.PARTITIONS  # noqa: E731
    kit.eventually(everything, within=kit.HEALED, what="the other worker has taken over")
    rest = max(0.5, until - time.monotonic())
    arena.pause(rest, rest)
    assert worker.alive, "it goes on while it is cut off"
    told = lambda: worker.reports[before:]  # noqa: E731
    degraded = lambda: any(report.state == "degraded" for report in told())  # noqa: E731
    kit.eventually(degraded, within=kit.HEALED, what="it says that it is cut off")
    link.mend()
    return told()


def late_replies(arena: Any, scale: Scale) -> dict[str, object]:
    """F14: replies to produce and commit come seconds late, some when nobody waits any more."""
    seconds = 60 * scale
    port = int(arena.kafka.bootstrap.rpartition(":")[2])
    with (
        network.secluded() as namespace,
        latereplies.late_replies(
            network.listening(namespace, port),
            port,
            seed=arena.chance.randrange(1 << 32),
            share=0.01,
            longest=15.0,
        ) as proxy,
    ):
        for _ in range(2):
            arena.start(inside=network.inside(namespace))
        arena.feed(round(60_000 * scale), seconds=seconds)
        proxy.share = 0.0
        healed = arena.heal(within=60)
        arena.close()
    assert proxy.held, "some replies were late"
    return {
        "late": len(proxy.held),
        "latest": f"{max(proxy.held):.1f} s",
        "healed in": f"{healed:.1f} s",
    }


def rebalance_storm(arena: Any, scale: Scale) -> dict[str, object]:
    """F25: workers join and leave every two seconds."""
    arena.start()
    moves = 0
    seconds = 60 * scale
    with arena.feeding(round(100_000 * scale), seconds=seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            arena.pause(1.5, 2.5)
            running = arena.running()
            if len(running) > 1 and arena.chance.random() < 0.5:
                leaver = arena.chance.choice(running)
                leaver.kill() if arena.chance.random() < 0.3 else leaver.stop()
            elif len(running) < 4:
                arena.start()
            moves += 1
    return {"moves": moves}


def storm_of_timers(arena: Any, scale: Scale) -> dict[str, object]:
    """F25: the same with a timer for each event: each goes off once, wherever it is by then."""
    arena.environment["ALSO"] = "ring"
    facts = rebalance_storm(arena, scale / 2)
    rung = lambda: Counter(  # noqa: E731
        msgspec.json.decode(raw.value)["id"]
        for raw in kit.LogReader(arena.kafka).read(arena.app.rung.topic.name)
    )
    kit.eventually(lambda: len(rung()) >= arena.written, within=60, what="all timers went off")
    arena.heal(within=60)
    arena.close()
    often = rung()
    assert set(often) == set(range(1, arena.written + 1)), "timers of no event"
    twice = [id_ for id_, times in often.items() if times > 1]
    assert not twice, f"{len(twice)} timers went off twice, first that of {min(twice)}"
    return facts | {"timers": len(often)}


def storm_on_disk(arena: Any, scale: Scale) -> dict[str, object]:
    """F25, F20: the same with state on a disk that all workers share."""
    with tempfile.TemporaryDirectory() as directory:
        arena.environment["STATE_DIR"] = directory
        facts = rebalance_storm(arena, scale)
        facts["healed in"] = f"{arena.heal(within=60):.1f} s"
        arena.close()
    return facts


def poison(arena: Any, scale: Scale) -> dict[str, object]:
    """F29: one record in a hundred cannot be used, while workers die."""
    for _ in range(2):
        arena.start()
    with arena.feeding(round(60_000 * scale), seconds=20 * scale, poison=0.01):
        for _ in range(2):
            arena.pause(2, 4)
            arena.chance.choice(arena.running()).kill()
            arena.start()
    return {"poison": len(arena.poison)}


def lost_disk(arena: Any, scale: Scale) -> dict[str, object]:
    """F20: state on disk; workers die, and what they kept is lost, broken or an older copy."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as older:
        arena.environment["STATE_DIR"] = directory
        rounds = 6 if scale >= 1 else 2
        with arena.feeding(round(15_000 * rounds), seconds=8.0 * rounds):
            for _ in range(rounds):
                worker = arena.start()
                arena.pause(5, 7)
                worker.kill()
                harm = arena.chance.choice(["nothing", "lost", "broken", "older"])
                _harm(Path(directory), harm, arena.chance, older=Path(older))
        arena.start()
        arena.heal()
        arena.close()
    return {"rounds": rounds}


def _harm(directory: Path, harm: str, chance: Any, *, older: Path) -> None:
    """Harm what is on disk; ``older`` keeps the first copy there was."""
    kept = older / "copy"
    if not kept.exists():
        shutil.copytree(directory, kept)
    if harm == "older":
        shutil.rmtree(directory)
        shutil.copytree(kept, directory)
    if harm == "lost":
        shutil.rmtree(chance.choice(sorted(directory.iterdir())), ignore_errors=True)
    if harm == "broken":
        for file in [*directory.rglob("*.sst"), *directory.rglob("*.log")]:
            data = bytearray(file.read_bytes())
            for _ in range(3):
                if data:
                    data[chance.randrange(len(data))] ^= 0xFF
            file.write_bytes(data)


def full_disk(arena: Any, scale: Scale) -> dict[str, object]:
    """F17: the state's disk is full: it pauses, says so, and goes on when there is room."""
    with disks.small_disk("64m") as directory:
        arena.environment["STATE_DIR"] = str(directory)
        ballast = directory / "ballast"
        worker = arena.start()
        arena.feed(round(40_000 * max(scale, 0.5)))
        disks.fill(ballast, by=65536)
        arena.feed(round(100_000 * max(scale, 0.5)))
        told = lambda: worker.reports and "state" in worker.reports[-1].reason  # noqa: E731
        kit.eventually(told, within=kit.PATIENCE, what="it says that its disk is full")
        assert worker.reports[-1].state == "degraded"
        ballast.unlink()
        arena.heal(within=60)
        arena.close()
    return {}


SCENARIOS: dict[str, Callable[[Any, Scale], dict[str, object]]] = {
    scenario.__name__: scenario
    for scenario in (
        random_death,
        every_step,
        rolling_stop,
        zombie,
        broker_pause,
        broker_crash,
        leader_crash,
        cut_off,
        late_replies,
        rebalance_storm,
        storm_of_timers,
        storm_on_disk,
        poison,
        hotkey.hot_key,
        lost_disk,
        full_disk,
        logfaults.trimmed_changelog,
        logfaults.compacted_changelog,
        logfaults.trimmed_source,
    )
}


def run(name: str, seed: int, *, scale: Scale = 1.0) -> tuple[list[str], dict[str, object]]:
    """Play a scenario; return what is wrong, and facts worth telling."""
    brokers = 3 if name == "leader_crash" else 1
    keys = max(1000, round(1_000_000 * scale)) if name == "compacted_changelog" else 1000
    app = f"{name.replace('_', '-')}-{seed}"
    with kit.arena(seed, app, brokers=brokers, keys=keys) as arena:
        facts = SCENARIOS[name](arena, scale)
        if arena.running():
            facts["healed in"] = f"{arena.heal(within=max(kit.HEALED, 60 * scale)):.1f} s"
        facts["records"] = arena.written
        history = arena.history()
        for allow in arena.allowances:
            allow(history)
        return [str(finding) for finding in kit.checker.check(history)], facts
