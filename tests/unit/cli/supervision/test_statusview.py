import io
import re

import pytest

from penstock.cli.screen.partlines import PartLines, part_line, rate_text
from penstock.cli.screen.terminal import Terminal
from penstock.cli.supervision.statusview import LiveView, PlainView, Status, make_view
from penstock.core.status.report import Counts, PartReport
from penstock.core.status.status import PartStatus
from penstock.core.units import span_text


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(part: str, state: str, **more) -> PartStatus:
    given = {
        "kind": "service",
        "since_seconds": 65.0,
        "reason": "",
        "counts": Counts(received=10, passed=9, dead_lettered=1),
        "rate_in": 5.0,
        "rate_out": 2.0,
        "lag": 7,
        "restarts": 0,
    } | more
    return PartStatus(process=part, part=part, state=state, **given)


STATUS = Status(
    app="example",
    broker="broker running at 127.0.0.1:1",
    rows=[row("count", "running"), row("split", "degraded", reason="no contact", restarts=2)],
    watched="counts",
    values=[{"word": "the", "count": 12}],
    hint="Ctrl-C ends",
)


def test_elsewhere_the_status_is_one_line_and_the_values_are_data():
    out, err = io.StringIO(), io.StringIO()
    view = make_view(Terminal(out=out, err=err))
    assert isinstance(view, PlainView)
    view.show(STATUS)
    view.show(STATUS)
    (line,) = err.getvalue().splitlines()
    assert line[9:] == (
        "1 of 2 parts running, split degraded, in 10/s, out 4.0/s, lag 14, dead letters 2, restarts 2"
    )
    assert out.getvalue() == "counts\tthe\t12\n"


def test_on_a_terminal_the_status_is_a_table(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    screen = Screen()
    view = make_view(Terminal(err=screen))
    assert isinstance(view, LiveView)
    view.note("something happened")
    view.show(STATUS)
    view.close()
    drawn = screen.getvalue()
    for text in ("something happened", "broker running", "degraded", "no contact", "1m05s", "the"):
        assert text in drawn


WORDY = [
    row(
        "forecast_of_the_next_hour",
        "running",
        rate_in=12_345.0,
        rate_out=10_000.0,
        lag=1_234_567,
        detail={"listening on": "http://127.0.0.1:8800 " * 20},
    ),
    row(
        "count", "restarting", reason="exit code 1: " + "something long happened " * 10, restarts=3
    ),
]


@pytest.mark.parametrize("columns", [60, 80, 100, 150, 220])
def test_numbers_and_states_are_whole_at_any_width_and_the_description_is_cut(monkeypatch, columns):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen()
    view = make_view(Terminal(err=screen))
    view.show(Status(app="example", broker="", rows=WORDY))
    view.close()
    lines = [re.sub(r"\x1b[^a-zA-Z]*[a-zA-Z]", "", line) for line in screen.getvalue().splitlines()]
    (head,) = {line.rstrip() for line in lines if line.startswith("part")}
    (wordy,) = {line.rstrip() for line in lines if line.startswith("forecast")}
    (count,) = {line.rstrip() for line in lines if line.startswith("count")}
    assert head.split()[:4] == ["part", "state", "in", "out"]
    assert wordy.split()[:4] == ["forecast_of_the_next_hour", "running", "12.3k/s", "10.0k/s"]
    assert "restarting" in count
    assert all(len(line) <= columns for line in (head, wordy, count))
    shown = head.split()
    if "lag" in shown:
        assert "1,234,567" in wordy
    if columns >= 150:
        assert shown[4:] == ["lag", "dead", "restarts", "since", "kind", "what"]
        assert wordy.endswith("…")
        assert count.endswith("…")
    else:
        assert "…" not in wordy


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (125, "2m05s"), (4805, "1h20m")]
)
def test_a_time_span_has_its_two_largest_units(seconds, text):
    assert span_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0/s"), (0.25, "0.2/s"), (12.4, "12/s"), (12_345, "12.3k/s")]
)
def test_a_rate_is_short(rate, text):
    assert rate_text(rate) == text


def test_a_part_is_one_line_and_written_when_it_changes_or_now_and_then():
    now = [0.0]
    written: list[str] = []
    lines = PartLines(written.append, clock=lambda: now[0])

    def report(state="running", **more) -> PartReport:
        return PartReport(part="count", kind="service", state=state, at=0.0, **more)

    lines.take(report())
    lines.take(report(counts=Counts(received=2000, passed=1999, dead_lettered=1, written=3)))
    assert written == ["count: running"]
    lines.take(report("degraded", reason="no contact"))
    assert written[-1] == "count: degraded  (no contact)"
    now[0] = 10.0
    lines.take(report("degraded", reason="no contact"))
    assert len(written) == 3


def test_processes_of_one_part_have_lines_of_their_own():
    written: list[str] = []
    lines = PartLines(written.append, clock=lambda: 0.0)
    restoring = {"restoring": "1: 40%", "keys": "7"}
    for _ in range(2):
        for process, state in (("count-1", "running"), ("count-2", "starting")):
            report = PartReport(part="count", kind="service", state=state, at=0.0, detail=restoring)
            lines.take(report, process)
    assert written == [
        "count-1: running  restoring 1: 40%",
        "count-2: starting  restoring 1: 40%",
    ]


def test_a_line_has_counts_rates_lag_and_facts():
    report = PartReport(
        part="socket",
        kind="source",
        state="running",
        at=0.0,
        counts=Counts(received=2000, passed=1999, dead_lettered=1, written=1999),
        rate_in=20.0,
        rate_out=19.0,
        lag=5,
        detail={"listening on": "127.0.0.1:9999"},
    )
    assert part_line(report) == (
        "socket: running  in 2,000 (20/s)  out 1,999 (19/s)  dead letters 1  lag 5  "
        "listening on 127.0.0.1:9999"
    )
