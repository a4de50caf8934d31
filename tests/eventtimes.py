"""Hostile event times from a seed, and what fixed and sliding windows over them must come to.

The recount knows nothing of panes, buckets or Spark: it goes through all records once, with the
watermark that the batches before have left.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

EPOCH_AT = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The year 1 begins, the year 9999 ends."""
SECOND = 1_000_000
MINUTE = 60 * SECOND
DEVICES = ("a", "b", "c")
BASES = (
    FIRST,
    -12_219_292_800 * SECOND,  # 1582
    -(2**53) // 1000 * 1000,
    -45 * SECOND,  # windows straddle 1970
    1_767_225_600 * SECOND,  # 2026
    4_102_444_800 * SECOND,  # 2100
    LAST - 10 * 86_400 * SECOND,
)
"""Instants around which records happen."""


@dataclass(frozen=True)
class Happening:
    """One record."""

    device: str
    time: int
    level: int
    """A negative one is not selected."""

    @property
    def at(self) -> datetime:
        return EPOCH_AT + timedelta(microseconds=self.time)


@dataclass(frozen=True)
class Windows:
    """Windows of a size, one beginning every period."""

    size: int
    period: int
    offset: int = 0

    def of(self, time: int) -> Iterator[tuple[int, int]]:
        number = (time - self.offset) // self.period
        while (start := self.offset + number * self.period) + self.size > time:
            yield start, start + self.size
            number -= 1


@dataclass(frozen=True)
class Scene:
    """What happens, batch by batch; the watermark is so far behind the newest record."""

    windows: Windows
    disorder: int
    batches: list[list[Happening]] = field(default_factory=list)

    @property
    def watermark(self) -> int:
        """Return where the watermark ends."""
        return max(each.time for batch in self.batches for each in batch) - self.disorder


def wild(seed: int) -> Scene:
    """Records in any order at any time, many of them late."""
    chance = random.Random(seed)
    scene = Scene(_windows(chance), chance.choice([0, SECOND, 10 * MINUTE]))
    bases = sorted(chance.sample(BASES, chance.randint(1, 4)))
    for number in range(chance.randint(2, 8)):
        base = bases[min(number * len(bases) // 6, len(bases) - 1)]
        if chance.random() < 0.2:
            base = chance.choice(BASES)
        scene.batches.append(_around(chance, base, chance.randint(1, 12)))
    return scene


def orderly(seed: int, windows: Windows) -> Scene:
    """Records from the year 1 to 9999 in time, and some that are late whoever judges.

    The last one is not selected, and closes every window but its own.
    """
    chance = random.Random(seed)
    scene = Scene(windows, 10 * MINUTE)
    for number, base in enumerate(BASES):
        batch = _around(chance, base, 12)
        if number > 2:
            batch += _around(chance, BASES[number - 3], 2)
        chance.shuffle(batch)
        scene.batches.append(batch)
    scene.batches.append([Happening("a", LAST - 86_400 * SECOND, -1)])
    return scene


def recount(scene: Scene) -> tuple[Counter, Counter]:
    """Return the windows that are over, with their records; and the late ones by window."""
    windows: dict[tuple[str, int, int], list[int]] = {}
    late: Counter = Counter()
    watermark = newest = None
    for batch in scene.batches:
        for each in batch:
            newest = each.time if newest is None else max(newest, each.time)
            for start, end in scene.windows.of(each.time) if each.level >= 0 else ():
                if watermark is not None and end <= watermark:
                    late[each.device, each.time, start, end] += 1
                else:
                    windows.setdefault((each.device, start, end), []).append(each.level)
        watermark = newest - scene.disorder
    over = Counter(
        (device, instant(start), instant(end), tuple(sorted(levels)))
        for (device, start, end), levels in windows.items()
        if end <= watermark
    )
    return over, late


def instant(micros: int) -> datetime:
    """Return an instant; one out of time is the first or the last."""
    return EPOCH_AT + timedelta(microseconds=min(max(micros, FIRST), LAST))


def _windows(chance: random.Random) -> Windows:
    size = chance.choice([1, 7, 60, 3600, 86_400]) * SECOND
    period = chance.choice([size, size, max(SECOND // 2, size // 4)])
    return Windows(size, period, chance.choice([0, 0, 3 * SECOND, -2 * SECOND]))


def _around(chance: random.Random, base: int, count: int) -> list[Happening]:
    times = [base + chance.randrange(5 * MINUTE) for _ in range(count)]
    if chance.random() < 0.3:
        times = [base, *times[1:], base][:count]  # equal instants, and the very first one
    return [
        Happening(chance.choice(DEVICES), min(max(time, FIRST), LAST), chance.randint(-2, 9))
        for time in times
    ]
