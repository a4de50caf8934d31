"""Fetching jars with a bar on a terminal, and a line for each tenth of the way elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.cli.screen.terminal import Terminal
from penstock.machine.java.fetch import FetchProgress, fetch_jars
from penstock.machine.java.jars import Jar, jars_dir

__all__ = ["fetch_and_show"]

_PLAIN_STEPS = 10


def fetch_and_show(terminal: Terminal, jars: Sequence[Jar], *, mirror: str | None = None) -> None:
    """Fetch jars as ``fetch_jars`` does, and show how far it is."""
    with _progress(terminal) as progress:
        fetch_jars(jars, mirror=mirror, progress=progress)
    terminal.note(f"{len(jars)} jars fetched and verified, in {jars_dir()}")


@contextmanager
def _progress(terminal: Terminal) -> Iterator[Callable[[FetchProgress], None]]:
    if not terminal.draws_notes:
        yield _PlainProgress(terminal).tell
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    words = TextColumn("{task.description}", markup=False)
    columns = (words, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=terminal.notes) as bar:
        task = bar.add_task("jars")

        def tell(found: FetchProgress) -> None:
            text = "waiting for another fetch" if found.waiting else "fetching jars"
            bar.update(
                task,
                completed=found.bytes_done,
                total=found.bytes_total,
                description=f"{text} {found.jars_done}/{found.jars_total}",
            )

        yield tell


class _PlainProgress:
    """One line for each tenth of the way."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._step = -1
        self._waiting = False

    def tell(self, found: FetchProgress) -> None:
        if found.waiting and not self._waiting:
            self._terminal.note("waiting for another process that fetches")
        self._waiting = found.waiting
        step = _PLAIN_STEPS * found.bytes_done // max(found.bytes_total, 1)
        if step > self._step:
            self._step = step
            done, total = found.bytes_done >> 20, found.bytes_total >> 20
            jars = f"{found.jars_done} of {found.jars_total} jars"
            self._terminal.note(f"fetching: {done} of {total} MiB, {jars}")
