"""Faults by name: what a device measures while something is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["FAULTS", "Fault"]

Fault = Callable[[dict[str, float], list[str], float, Random], None]
"""Changes metrics and log lines, given how far the fault has gone: 0 at its start, 1 at its end."""

LEFT = 0.2
HOT = 70.0
WORN = 400.0
SLOW = 60.0


def degrading(metrics: dict[str, float], log: list[str], gone: float, chance: Random) -> None:
    """Let a drive wear out: bad sectors, slower and slower answers, errors in the log."""
    metrics["machine.bad_sectors"] = float(round(WORN * gone * gone))
    metrics["machine.disk_ms"] += SLOW * gone
    if chance.random() < gone:
        log.append("error: disk: sector could not be read")


def overheating(metrics: dict[str, float], log: list[str], gone: float, chance: Random) -> None:
    """Let a machine grow hot: a fan has failed."""
    del chance
    metrics["machine.celsius"] += HOT * gone
    if gone >= 1:
        log.append("warning: temperature above its limit")


def flapping(metrics: dict[str, float], log: list[str], gone: float, chance: Random) -> None:
    """Let a link go down and up again, more and more often."""
    if chance.random() < 0.3 + 0.7 * gone:
        metrics["os.net_errors"] += chance.uniform(20, 60)
        if "app.requests" in metrics:
            metrics["app.requests"] *= LEFT
        log.append("error: link is down")


def stuck(metrics: dict[str, float], log: list[str], gone: float, chance: Random) -> None:
    """Let a sensor always say the same."""
    del log, gone, chance
    metrics["machine.celsius"] = 40.0


FAULTS: dict[str, Fault] = {
    each.__name__: each for each in (degrading, flapping, overheating, stuck)
}
