"""Show the progress of long work: a bar on a terminal, a line now and then elsewhere.

The time left is shown once there is a rate; before that it is "unknown".
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeAlias

from penstock.cli.screen.partlines import count_text, rate_text
from penstock.cli.screen.terminal import Terminal
from penstock.core.printable import printable
from penstock.core.status.estimate import Estimate

__all__ = ["Advance", "progress_bar", "progress_text"]

_EVERY_SECONDS = 10.0
_MINUTE = 60


Advance: TypeAlias = Callable[[int, int], None]
"""Takes how much is done, of how much there is by now; called from one thread."""


@contextmanager
def progress_bar(
    terminal: Terminal,
    text: str,
    *,
    unit: str = "records",
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Advance]:
    """Give what shows how far something is, on standard error, until the block ends."""
    estimate = Estimate()
    if not terminal.draws_notes:
        terminal.note(text)
        shown_at, shown = clock(), ""

        def tell(done: int, total: int) -> None:
            nonlocal shown_at, shown
            estimate.take(clock(), done, total)
            line = progress_text(estimate, unit=unit)
            if line != shown and (clock() - shown_at >= _EVERY_SECONDS or 0 < done == total):
                shown_at, shown = clock(), line
                terminal.note(f"{text}: {line}")

        yield tell
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    with Progress(*columns, console=terminal.notes, transient=True) as bar:
        task = bar.add_task(printable(text), total=None, said="starting")

        def draw(done: int, total: int) -> None:
            estimate.take(clock(), done, total)
            said = progress_text(estimate, unit=unit)
            bar.update(task, completed=done, total=estimate.total or None, said=said)

        yield draw


def progress_text(estimate: Estimate, *, unit: str) -> str:
    """Return progress, rate and time left in one line."""
    total = count_text(estimate.total) if estimate.total else "an unknown number of"
    whole = f"{count_text(estimate.done)} of {total} {unit}"
    rate = "" if estimate.rate is None else f", {rate_text(estimate.rate)}"
    return f"{whole}{rate}, {_left(estimate.seconds_left)}"


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "time left unknown"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s left"
    whole = timedelta(seconds=round(seconds))
    return f"{whole} left"
