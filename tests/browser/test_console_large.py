"""The console where there is much, and where everything is broken; what is shown is given."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.browser.plant import HOSTILE
from tests.manytopics import Given, many

from penstock.cli.console.console import ConsolePage
from penstock.cli.console.look import Look, keyed
from penstock.cli.console.reach import Reach
from penstock.cli.status.page import StatusPage
from penstock.core.status.report import Counts
from penstock.core.status.status import PartStatus, RunStatus

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
MOST_HEAP_BYTES = 100 << 20
MOST_WIRE_BYTES = 300_000
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def address():
    states = ["failed", "restarting", "degraded", "starting", *["running"] * 296]
    parts = tuple(
        PartStatus(
            process=f"part-{number}",
            part=f"part-{number}",
            kind="service",
            state=state,
            reason="" if state == "running" else HOSTILE,
            since_seconds=100.0 + number,
            counts=Counts(received=9, passed=8, dead_lettered=1),
            rate_in=5.0,
            lag=number,
            detail={HOSTILE: HOSTILE},
        )
        for number, state in enumerate(states)
    )
    run = RunStatus(app="large", command="dev", pid=1, started_at=AT, parts=parts)

    def look():
        return Look(time.time(), [run], keyed([run], several=False), silent=[HOSTILE])

    console = ConsolePage(
        look, app="large", command="dev", reach=Reach(log=Given(many()), graph=lambda: None)
    )
    with console, StatusPage(lambda: run, port=0, more=console.offers) as page:
        yield page.address


def test_everything_that_is_broken_is_told_and_nothing_of_it_is_markup(page, address):
    page.open(f"{address}/")
    page.wait("document.querySelectorAll('.troubles li').length === 5")
    why = page.evaluate(
        "[...document.querySelectorAll('.troubles .why')].map((e) => e.textContent)"
    )
    assert why == [HOSTILE] * 4
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.evaluate("window.broken") is None
    assert page.evaluate(CONTRAST) == []
    page.open(f"{address}/#/part/part-0")
    page.wait(f"document.querySelector('dl dt')?.textContent === {json.dumps(HOSTILE)}")
    assert page.evaluate("window.broken") is None


def test_two_hundred_topics_of_a_hundred_partitions_are_shown_and_found(page, address):
    page.open(f"{address}/#/topics")
    page.wait("document.querySelectorAll('main tbody tr').length === 200")
    page.wait_text("20,000 partitions", "main")
    page.fill("main input", "topic-123")
    page.wait("document.querySelectorAll('main tbody tr').length === 1")
    page.click("main tbody a.name")
    page.wait("document.querySelectorAll('.heat rect').length === 200")
    page.open(f"{address}/#/groups/group-3")
    page.wait("document.querySelectorAll('main tbody tr').length >= 500")
    assert page.heap_bytes() < MOST_HEAP_BYTES


HOUR = """
(() => {
  class Fed extends EventTarget {
    constructor(url) {
      super();
      this.readyState = 1;
      (window.fed ??= []).push([url, this]);
      setTimeout(() => this.dispatchEvent(new Event('open')));
    }
    close() { this.readyState = 2; }
  }
  Fed.CLOSED = 2;
  window.EventSource = Fed;
  window.tell = (part, kind, document) => window.fed.filter(([url, each]) => url.includes(part) && each.readyState === 1)
    .forEach(([, each]) => each.dispatchEvent(Object.assign(new Event(kind), { data: JSON.stringify(document) })));
})();
"""
"""In place of the streams of events: what a test tells, as fast as it can."""
FEED = """
(async () => {
  const part = (n) => ({ key: `part-${n}`, part: `part-${n}`, process: `part-${n}`, kind: 'service', state: 'running', well: true, since_seconds: 9, why: '', restarts: 0,
    counts: { received: 9, passed: 9, filtered: 0, dead_lettered: 0, in_flight: 0, written: 9 }, balanced: true, rate_in: 5, rate_out: 5, lag: 3, trend: { going: 'steady', text: 'steady' }, latency_seconds: 0.01, detail: {} });
  const parts = Array.from({ length: 50 }, (_, n) => part(n));
  const totals = { in: 1000, out: 1000, received: 9, written: 9, in_flight: 0, dead_lettered: 0, restarts: 0, late: 0, skipped: 0, dropped: 0, unaccounted: 0 };
  const value = 'x'.repeat(200);
  let offset = 0;
  for (let second = 0; second < 3600; second += 1) {
    tell('/live', 'now', { at: second, well: true, mood: 'good', summary: 'all is well', troubles: [], totals, worst_lag: null, runs: [], parts });
    if (second % 5 === 0) tell('/live', 'samples', { at: [second], series: Object.fromEntries(parts.map((each) => [each.key, { in: [second], out: [1], lag: [2], latency: [3], dead: [0] }])) });
    tell('/live', 'happened', [{ number: second + 1, at: second, kind: 'said', part: '', text: value }]);
    const records = Array.from({ length: 200 }, () => ({ partition: 0, offset: (offset += 1), key: `k${offset}`, at: '2026-01-01T00:00:00Z', value: { text: value, offset }, headers: {} }));
    tell('/tail/', 'records', { records, passed: 800 });
    if (second % 60 === 0) await new Promise((done) => requestAnimationFrame(done));
  }
  return offset;
})()
"""


def test_an_hour_of_a_thousand_updates_a_second_leaves_little_behind(page, address):
    page.command("Page.addScriptToEvaluateOnNewDocument", source=HOUR)
    page.open(f"{address}/#/tail/topic-000")
    page.wait("window.fed?.some(([url]) => url.includes('/tail/'))")
    assert page.evaluate(FEED) == 720_000
    page.wait("document.querySelectorAll('.records li').length === 200")
    assert "2,880,000 passed by" in page.text("main")
    page.press("1")
    page.wait("document.querySelectorAll('main tbody tr').length === 50")
    assert page.heap_bytes() < MOST_HEAP_BYTES


def test_the_page_takes_little_from_the_wire(page, address):
    page.open(f"{address}/")
    page.wait("document.querySelectorAll('.troubles li').length === 5")
    sent = page.evaluate(
        "performance.getEntries().reduce((sum, each) => sum + (each.transferSize ?? 0), 0)"
    )
    assert 0 < sent < MOST_WIRE_BYTES
