"""What can happen to pipelines, each a seeded story that ends in the both-ways check.

The numbers are those of the table of faults; see ``scenarios.py``, which has those of services.
"""

import json
import os
import runpy
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import DataError

HERE = Path(__file__).parent
kit = SimpleNamespace(**runpy.run_path(str(HERE / "pipelinearena.py")))
disks = SimpleNamespace(**runpy.run_path(str(HERE / "smalldisk.py")))
Unavailable = runpy.run_path(str(HERE / "network.py"))["Unavailable"]

Scale = float
"""1: as the promise says; less: as long as a test may take."""


def begun(arena: Any, *settings: str) -> Any:
    """Start both pipelines and wait until they have done something."""
    run = arena.start(*settings)
    # Its topics are its own to make.
    arena.eventually(lambda: run.last, run, what="it speaks")
    arena.feed(500)
    arena.heal(run, within=kit.PATIENCE)
    return run


def degraded(run: Any, after: int) -> set[str]:
    """Return why the pipelines said they were degraded, from their n-th report on."""
    return {
        report.reason
        for reports in run.reports.values()
        for report in reports[after:]
        if report.state == "degraded"
    }


def broker_away(arena: Any, scale: Scale) -> dict[str, object]:
    """F5, F6: the broker stands still for 5 s and 40 s, is killed twice and comes back."""
    run = begun(arena)
    heard = min(map(len, run.reports.values()))
    with arena.feeding(poison=0.01):
        for seconds in (5.0, 40.0) if scale >= 1 else (5.0,):
            _more(arena, run)
            arena.pause(seconds)
        for _ in range(2 if scale >= 1 else 1):
            _more(arena, run)
            arena.broker.kill()
            arena.eventually(lambda: degraded(run, heard), run, what="it says so")
            arena.broker.ensure()
        _more(arena, run)
    arena.heal(run)
    assert run.stop() == 0, arena.said()
    return {"degraded": "; ".join(sorted(degraded(run, heard)))[:200]}


def _more(arena: Any, run: Any) -> None:
    """Wait until records flow."""
    before = arena.sent
    arena.eventually(lambda: arena.sent > before + 5 * kit.FEED, run, what="records flow")


def broker_gone(arena: Any, scale: Scale) -> dict[str, object]:
    """F6: the broker stays away for longer than is waited for: it ends, with the reason."""
    run = begun(arena, "spark.retry_for=1s", "kafka.request_timeout=5s")
    arena.feed()
    arena.broker.kill()
    assert run.wait() == 1, arena.said()
    assert {report.state for report in run.last} == {"failed"}
    arena.broker.ensure()
    arena.heal(arena.start(), within=kit.PATIENCE)
    return {"reason": run.last[0].reason}


def poison(arena: Any, scale: Scale) -> dict[str, object]:
    """F29: one record in a hundred cannot be used, one has 8 MB, one is too large for any topic."""
    run = begun(arena)
    try:
        with Producer(arena.kafka) as producer:
            producer.send("events", key=b"huge", value=b"x" * (50 << 20))
    except DataError as error:
        refused = error.code
    else:
        raise AssertionError("50 MB are refused before they are sent")
    arena.feed(round(20_000 * scale), poison=0.01)
    arena.feed(100, big=True)
    arena.heal(run)
    assert all(report.counts.balanced for report in run.last)
    letters = {report.part: report.counts.dead_lettered for report in run.last}
    assert set(letters.values()) == {len(arena.poison)}, letters
    assert run.stop() == 0, arena.said()
    return {"poison": len(arena.poison), "50 MB": refused}


def full_checkpoint(arena: Any, scale: Scale) -> dict[str, object]:
    """F19: the checkpoint's disk is full: it stops, says so, and goes on when there is room."""
    if os.geteuid() != 0:
        raise Unavailable("a small disk can be mounted by root only")
    with disks.small_disk("16m") as directory:
        run = begun(arena, f"spark.checkpoint_dir={directory}")
        ballast = directory / "ballast"
        with arena.feeding():
            disks.fill(ballast, by=4096)
            assert run.wait() == 1, arena.said()
        assert any("the disk is full" in report.reason for report in run.last), run.last
        assert "disk.full" in arena.said()
        again = arena.start(f"spark.checkpoint_dir={directory}")
        assert again.wait() == 1, "still full"
        ballast.unlink()
        healed = arena.start(f"spark.checkpoint_dir={directory}")
        arena.feed()
        arena.heal(healed, within=kit.PATIENCE)
        assert healed.stop() == 0, arena.said()
    return {"reason": run.last[0].reason}


def trimmed(arena: Any, scale: Scale) -> dict[str, object]:
    """F22: retention deletes what was not read yet: they stop with every gap, or skip and count."""
    run = begun(arena)
    assert run.stop() == 0, arena.said()
    arena.feed(1_000)
    topics = Topics(arena.kafka)
    ends = {number: high for number, (_, high) in topics.ends("events").items()}
    topics.trim("events", ends)
    arena.feed(100)
    assert arena.start().wait() == 1, arena.said()
    said = arena.said()
    assert "offset.trimmed" in said
    assert all(f"events[{number}] wants offset" in said for number in ends)
    again = arena.start("spark.on_trimmed=skip")
    arena.heal(again, within=kit.PATIENCE)
    skipped = {report.detail["skipped"] for report in again.last}
    assert skipped == {"1000 offsets, which retention deleted before they were read"}, skipped
    assert again.stop() == 0, arena.said()
    ids = [json.loads(raw.value)["id"] for raw in LogReader(arena.kafka).read("seen")]
    assert sorted(ids) == [*range(1, 501), *range(1501, 1601)], "what was there, and once"
    return {"skipped": skipped.pop()}


def driver_death(arena: Any, scale: Scale) -> dict[str, object]:
    """F2, F9: the whole process is killed at random moments while poisoned records flow."""
    deaths = 4 if scale >= 1 else 1
    begun(arena).close()
    with arena.feeding(poison=0.01):
        for _ in range(deaths):
            run = arena.start()
            written = lambda found=run: any(each.counts.written for each in found.last)  # noqa: E731
            arena.eventually(written, run, what="something is written")
            run.stop(signal.SIGKILL)
    last = arena.start()
    arena.heal(last, within=kit.PATIENCE)
    assert last.stop() == 0, arena.said()
    return {"deaths": deaths}


SCENARIOS: dict[str, Callable[[Any, Scale], dict[str, object]]] = {
    f"pipelines_{scenario.__name__}": scenario
    for scenario in (broker_away, broker_gone, poison, full_checkpoint, trimmed, driver_death)
}
_LOSSY = frozenset({"pipelines_trimmed"})
"""Where some input is gone for good, so that there is nothing to compare with."""


def run(name: str, seed: int, *, scale: Scale = 1.0) -> tuple[list[str], dict[str, object]]:
    """Play a scenario; return what is wrong, and facts worth telling."""
    with tempfile.TemporaryDirectory() as home, kit.arena(seed, Path(home)) as arena:
        facts = SCENARIOS[name](arena, scale)
        facts["records"] = arena.sent
        return ([] if name in _LOSSY else arena.findings()), facts
