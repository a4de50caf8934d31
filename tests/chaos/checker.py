"""The both-ways checker: what went in against what came out, by id, order, count and state.

Everything is read from the log after the faults are over, by a reader of committed records. The
recount knows nothing of services: it is a loop over the input.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Finding", "History", "check"]

Ids = list[int]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: a promise, where it was broken, and how often."""

    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


@dataclass(slots=True)
class History:
    """One run as the log tells it, per key and in the order of the log."""

    written: dict[str, Ids] = field(default_factory=dict)
    """The ids of the input records."""
    seen: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Id and running count of each output record."""
    state: dict[str, int] = field(default_factory=dict)
    """The last value of each key on the changelog."""
    poison: Ids = field(default_factory=list)
    """Ids of input records that are to be dead letters."""
    dead: Ids = field(default_factory=list)
    """Ids of dead letters."""


def check(history: History) -> list[Finding]:
    """Return what is wrong, in both directions: missing and extra."""
    findings = [
        *_compare(
            {key: set(ids) for key, ids in history.written.items()},
            {key: [id_ for id_, _ in pairs] for key, pairs in history.seen.items()},
        )
    ]
    for key, ids in history.written.items():
        pairs = history.seen.get(key, [])
        expected = [(id_, count) for count, id_ in enumerate(ids, start=1)]
        if not findings and pairs != expected:
            bad = next(i for i, (a, b) in enumerate(zip(pairs, expected, strict=True)) if a != b)
            what = f"key {key}: {pairs[bad]} where {expected[bad]} must be (id, count)"
            findings.append(Finding("I3 order and count per key", what))
    recount = {key: len(ids) for key, ids in history.written.items()}
    if history.state != recount:
        wrong = [
            key for key in recount | history.state if history.state.get(key) != recount.get(key)
        ]
        key = min(wrong)
        what = f"key {key}: {history.state.get(key)} where {recount.get(key)} must be"
        findings.append(Finding("I5 state is the recount", f"{len(wrong)} keys, first {what}"))
    findings += _compare({"dead letters": set(history.poison)}, {"dead letters": history.dead})
    return findings


def _compare(expected: Mapping[str, set[int]], found: Mapping[str, Ids]) -> Iterable[Finding]:
    missing, extra, doubled = [], [], []
    for key in expected.keys() | found.keys():
        wanted, ids = expected.get(key, set()), found.get(key, [])
        missing += wanted - set(ids)
        extra += set(ids) - wanted
        doubled += [id_ for id_, times in Counter(ids).items() if times > 1]
    if missing:
        yield Finding("I1 nothing is lost", f"{len(missing)} missing, first id {min(missing)}")
    if extra:
        yield Finding("I4 nothing is made up", f"{len(extra)} too many, first id {min(extra)}")
    if doubled:
        yield Finding("I2 nothing is doubled", f"{len(doubled)} doubled, first id {min(doubled)}")
