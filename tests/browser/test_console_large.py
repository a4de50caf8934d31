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
