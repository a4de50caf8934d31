import io

from penstock.cli.screen.progressbar import progress_bar, progress_text
from penstock.cli.screen.terminal import Terminal
from penstock.core.status.estimate import Estimate


class Screen(io.StringIO):
    """An output that is, or is not, a terminal."""

    def __init__(self, *, draws):
        super().__init__()
        self._draws = draws

    def isatty(self):
        return self._draws


def shown(*, draws, steps):
    screen, now = Screen(draws=draws), [0.0]
    terminal = Terminal(out=io.StringIO(), err=screen)
    with progress_bar(terminal, "rebuilding count", clock=lambda: now[0]) as progress:
        for at, done, total in steps:
            now[0] = at
            progress(done, total)
    return screen.getvalue()


def test_elsewhere_than_on_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end():
    steps = [(0, 0, 1000), (5, 100, 1000), (11, 220, 1000), (12, 240, 1000), (50, 1000, 1000)]
    assert shown(draws=False, steps=steps).splitlines() == [
        "rebuilding count",
        "rebuilding count: 220 of 1,000 records, 20/s, 39 s left",
        "rebuilding count: 1,000 of 1,000 records, 20/s, 0 s left",
    ]


def test_on_a_terminal_a_bar_is_drawn():
    text = shown(draws=True, steps=[(0, 0, 10), (1, 5, 10)])
    assert "rebuilding count" in text
    assert "5 of 10 records, time left unknown" in text


def test_a_long_time_is_told_in_hours_and_minutes():
    estimate = Estimate()
    estimate.take(0.0, 0, 100_000)
    assert progress_text(estimate, unit="tasks") == "0 of 100,000 tasks, time left unknown"
    estimate.take(10.0, 100, 100_000)
    assert progress_text(estimate, unit="tasks") == "100 of 100,000 tasks, 10/s, 2:46:30 left"
