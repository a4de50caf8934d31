"""What can happen to the log itself: a changelog that is trimmed or compacted, an input deleted.

Stories like those of ``scenarios.py``, which lists them.
"""

import runpy
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("arena.py"))))


def trimmed_changelog(arena: Any, scale: float) -> dict[str, object]:
    """F21: the changelog is trimmed while workers restore from it: they stop, or are exact."""
    first = arena.start()
    arena.feed(round(40_000 * max(scale, 0.5)))
    arena.heal(within=60)
    first.kill()
    _let_trim(arena)
    topics, stops = kit.Topics(arena.kafka), 0
    for _ in range(3):
        worker = arena.start()
        kit.eventually(lambda found=worker: found.reports, within=kit.PATIENCE, what="it is up")
        arena.pause(0, 1.5)
        ends = topics.ends(arena.app.changelog)
        topics.trim(
            arena.app.changelog,
            {number: arena.chance.randint(low, high) for number, (low, high) in ends.items()},
        )
        arena.pause(3, 5)
        worker.kill()
        last = worker.reports[-1]
        assert last.state != "failed" or "trimmed" in last.reason, "it says why it stops"
        stops += last.state == "failed"
    assert stops, "at least the last worker finds a changelog without its beginning"
    arena.feed(1_000)
    arena.start()
    kit.eventually(lambda: not arena.running(), within=kit.PATIENCE, what="it stops again")
    arena.allowances.append(_as_far_as_seen)
    return {"stops": stops}


def _as_far_as_seen(history: Any) -> None:
    """Judge only what was handled: who has stopped leaves the rest, and its state is trimmed."""
    for key, ids in history.written.items():
        history.written[key] = ids[: len(history.seen.get(key, []))]
    history.state = {key: len(ids) for key, ids in history.written.items()}


def compacted_changelog(arena: Any, scale: float) -> dict[str, object]:
    """F21: a million keys; the changelog is empty, then compacted while workers restore and die."""
    keys = max(1000, round(1_000_000 * scale))
    first = arena.start()
    for count in (keys, keys // 2):  # the second time half of the changelog becomes out of date
        arena.feed(count)
        arena.heal(within=kit.PATIENCE * 3)
    first.kill()
    before = _held(arena)
    _configure(arena, ResourceType.BROKER, "1", {"log.cleaner.backoff.ms": "200"})
    _configure(
        arena,
        ResourceType.TOPIC,
        arena.app.changelog,
        {
            "min.cleanable.dirty.ratio": "0.01",
            "segment.bytes": "1048576",
            "segment.ms": "500",
            "delete.retention.ms": "100",
        },
    )
    shown = 0
    for _ in range(4):
        worker = arena.start()
        arena.feed(round(20_000 * max(scale, 0.1)))
        arena.pause(0.5, 6)
        worker.kill()
        shown += any("%" in report.detail.get("restoring", "") for report in worker.reports)
    assert shown or scale < 1, "how far a restore has come is shown"
    arena.start()
    arena.heal(within=kit.PATIENCE * 2)
    kit.eventually(lambda: _held(arena) < before, within=kit.PATIENCE, what="compaction")
    return {"keys": keys, "progress shown": f"{shown} of 4", "held": f"{before}, {_held(arena)}"}


def _held(arena: Any) -> int:
    """Return how many records the changelog holds."""
    return sum(1 for _ in kit.LogReader(arena.kafka).read(arena.app.changelog))


def trimmed_source(arena: Any, scale: float) -> dict[str, object]:
    """F22: events are deleted unread: a loud stop, or, where allowed, they are skipped and counted."""
    first = arena.start()
    arena.feed(round(10_000 * max(scale, 0.3)))
    arena.heal(within=60)
    assert first.stop() == 0
    arena.feed(round(10_000 * max(scale, 0.3)))
    arena.delete_events()
    loud = arena.start()
    kit.eventually(lambda: not loud.alive, within=kit.PATIENCE, what="a loud stop")
    assert loud.process.returncode, "it does not end as if all were well"
    last = loud.reports[-1]
    assert (last.state, "was trimmed" in last.reason) == ("failed", True), "it says why it stops"
    arena.environment["ON_TRIMMED"] = "skip"
    skippers = [arena.start(), arena.start()]
    for _ in range(6 if scale >= 1 else 2):
        arena.heal(within=60)
        for worker in skippers:  # asleep for less than a session: they find their place gone
            worker.send(signal.SIGSTOP)
        arena.feed(round(5_000 * max(scale, 0.3)))
        arena.delete_events()
        for worker in skippers:
            worker.send(signal.SIGCONT)
        arena.feed(1_000)
    arena.heal(within=60)
    assert all(worker.stop() == 0 for worker in skippers)
    told = sum(worker.reports[-1].metrics["skipped_offsets_total"] for worker in skippers)
    arena.allowances.append(lambda history: _without_skipped(history, arena.deleted, told=told))
    deleted = sum(map(len, arena.deleted.values()))
    return {"deleted": deleted, "skipped and told": round(told)}


def _without_skipped(history: Any, deleted: dict[str, list[int]], *, told: float) -> None:
    """Leave out what was deleted unread, after comparing its number with what the workers told."""
    missing = 0
    for key, ids in history.written.items():
        seen, gone = {id_ for id_, _ in history.seen.get(key, [])}, set(deleted.get(key, []))
        kept = [id_ for id_ in ids if id_ in seen or id_ not in gone]
        missing += len(ids) - len(kept)
        history.written[key] = kept
    history.written = {key: ids for key, ids in history.written.items() if ids}
    assert told == missing, f"{told:g} offsets were told to be skipped, {missing} were"


def _let_trim(arena: Any) -> None:
    """Let records of the changelog be deleted: Kafka refuses that while it is compacted only."""
    _configure(arena, ResourceType.TOPIC, arena.app.changelog, {"cleanup.policy": "compact,delete"})


def _configure(arena: Any, kind: ResourceType, name: str, settings: dict[str, str]) -> None:
    entries = [
        ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        for setting, value in settings.items()
    ]
    changed = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": arena.kafka.bootstrap})
    for done in admin.incremental_alter_configs([changed]).values():
        done.result(kit.HEALED)
