"""Reports of parts as plain lines: one for each change, and one now and then in between."""

import threading
from collections.abc import Callable, Mapping

from penstock.core.status.report import PartReport

__all__ = ["PartLines", "brief_text", "count_text", "part_line", "rate_text"]

_TEN = 10
_THOUSAND = 1000
_EVERY_SECONDS = 10.0
_HIDDEN = frozenset({"delivery", "partitions", "keys", "steps", "state", "state records"})
"""Facts that a line has no room for; ``penstock status`` shows all."""


class PartLines:
    """Writes a line when the state or reason of a part, or of one of its processes, changes.

    And every ten seconds.
    """

    def __init__(self, write: Callable[[str], None], *, clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: dict[str, tuple[str, str]] = {}
        self._due: dict[str, float] = {}

    def take(self, report: PartReport, process: str = "") -> None:
        """Take a report, from any thread; ``process`` distinguishes the processes of one part."""
        name = process or report.part
        with self._lock:
            now = self._clock()
            state = (report.state, report.reason)
            changed = self._shown.get(name) != state
            if changed or now >= self._due[name]:
                self._shown[name] = state
                self._due[name] = now + _EVERY_SECONDS
                self._write(part_line(report, name=name))


def part_line(report: PartReport, *, name: str = "") -> str:
    """Return a report as one line for people, of the part or of the process of this name."""
    counts = report.counts
    words = [f"{name or report.part}: {report.state}"]
    if report.reason:
        words.append(f"({report.reason})")
    if counts.received or counts.written:
        words.append(f"in {count_text(counts.received)} ({rate_text(report.rate_in)})")
        words.append(f"out {count_text(counts.written)} ({rate_text(report.rate_out)})")
    if counts.dead_lettered:
        words.append(f"dead letters {count_text(counts.dead_lettered)}")
    if report.lag is not None:
        words.append(f"lag {count_text(report.lag)}")
    facts = report.detail
    if report.state != "running":
        facts = {name: text for name, text in facts.items() if name == "restoring"}
    if brief := brief_text(facts):
        words.append(brief)
    return "  ".join(words)


def brief_text(detail: Mapping[str, str]) -> str:
    """Return the facts that matter most, in one line."""
    return ", ".join(f"{name} {text}" for name, text in detail.items() if name not in _HIDDEN)


def count_text(count: int) -> str:
    """Return a count with its thousands parted."""
    return f"{count:,}"


def rate_text(rate: float) -> str:
    """Return records per second, short: ``0.5/s``, ``120/s``, ``12.3k/s``."""
    if rate >= _THOUSAND:
        return f"{rate / _THOUSAND:.1f}k/s"
    return f"{rate:.0f}/s" if rate >= _TEN or rate == 0 else f"{rate:.1f}/s"
