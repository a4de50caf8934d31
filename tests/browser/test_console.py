"""The console of a running application, in a real browser, while things are killed."""

import json
import os
from pathlib import Path

import pytest
from tests.browser.plant import HOSTILE, Plant

pytestmark = pytest.mark.broker

PICTURES = os.environ.get("PENSTOCK_PICTURES", "")
"""A directory for pictures of what the tests see; empty: none are taken."""
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
MOST_PAGE_BYTES = 300_000


@pytest.fixture(scope="module")
def plant(kafka, tmp_path_factory):
    directory = tmp_path_factory.mktemp("plant")
    found = Plant(directory, name=f"plant-{os.getpid()}", bootstrap=kafka.bootstrap)
    found.start()
    yield found
    found.stop()


def picture(page, name):
    if PICTURES:
        page.screenshot(Path(PICTURES) / f"{name}.png")


def visit(page, plant, view=""):
    page.open(f"{plant.address}/#/{view}")


def test_it_says_what_runs_and_what_flows(page, plant):
    visit(page, plant)
    page.wait_text("All 4 parts are well", "main")
    page.wait("document.querySelectorAll('.tile svg.spark').length >= 4")
    page.wait("/[1-9]/.test(document.querySelector('.tile .value').textContent)")
    page.wait_text("dead letter", ".verdict-box")
    assert "live" in page.text(".wire")
    now = plant.ask("/v1/console/now")
    assert now["well"]
    assert {each["part"] for each in now["parts"]} == {
        "feed",
        "tally",
        "watch",
        f"{plant.name}.panes.windows",
    }
    assert all(each["balanced"] for each in now["parts"])


@pytest.mark.parametrize("view", ["overview", "topology", "part/tally", "windows"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_has_contrast_in_light_and_dark_and_fits_a_phone(page, plant, view, scheme):
    page.colours(scheme)
    visit(page, plant, view)
    page.wait("document.querySelector('main table, main .verdict-box, main .graph .node')")
    page.wait_text("live", ".wire")
    assert page.evaluate(CONTRAST) == []
    page.resize(390, 844, phone=True)
    page.wait("document.documentElement.scrollWidth <= 390")
    picture(page, f"console-phone-{view.replace('/', '-')}-{scheme}")


def test_the_topology_leads_to_a_part_by_keyboard_alone(page, plant):
    visit(page, plant)
    page.wait_text("All 4 parts are well", "main")
    page.press("2")
    page.wait("document.querySelectorAll('.graph .node').length === 8")
    page.wait("document.querySelectorAll('.graph .edge.flows').length >= 3")
    picture(page, "console-topology")
    page.evaluate("document.querySelector('.node.service').focus()")
    page.press("Enter")
    page.wait("location.hash.startsWith('#/part/')")
    page.wait_text("all accounted for", "main")
    page.wait_text("from the writing of the oldest record", "main")
    picture(page, "console-part")


def test_a_part_that_is_killed_is_told_with_reason_and_advice_and_comes_back(page, plant):
    visit(page, plant)
    page.wait_text("All 4 parts are well", "main")
    plant.kill("tally")
    page.wait_text("killed by SIGKILL", ".verdict-box.bad .why")
    page.wait_text("it starts again by itself", ".verdict-box.bad .do")
    picture(page, "console-killed")
    page.wait_text("All 4 parts are well", "main")
    page.wait_text("died: killed by SIGKILL", "ol.line")
    assert page.evaluate("document.querySelectorAll('ol.line .died').length") >= 1
    page.wait("document.querySelectorAll('td svg.spark').length === 4")
    picture(page, "console-overview")


def test_it_says_when_it_is_cut_off_and_survives_a_restart_of_the_run(page, plant):
    visit(page, plant)
    page.wait_text("All 4 parts are well", "main")
    before = plant.address
    plant.stop()
    page.wait_text("cut off since", ".wire")
    page.wait_text("The run does not answer", "main")
    page.wait_text("start it again", "main")
    plant.start()
    assert plant.address == before
    page.wait("document.querySelector('.wire').textContent === 'live'")
    page.wait_text("All 4 parts are well", "main")
    refused = [each for each in page.errors if "Failed to load resource" in each]
    assert page.errors == refused
    page.errors.clear()


def test_topics_lead_to_their_records_which_are_filtered_and_paused(page, plant):
    visit(page, plant)
    page.wait_text("live", ".wire")
    page.press("3")
    page.fill("main input", f"{plant.name}.readings")
    page.wait_text("1 of", "main .bar")
    page.wait_text("plant.tally", "main table")
    picture(page, "console-topics")
    page.click("main tbody a.name")
    page.wait("document.querySelectorAll('.heat rect').length >= 2")
    page.wait_text("Reading, version 1", "main")
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-topic")
    page.click("a.button")
    page.wait("document.querySelectorAll('.records li').length > 20")
    # What a record says is text, whatever it says.
    page.fill("input[name=where]", "celsius > 900")
    page.press("Enter")
    page.wait(f"document.querySelector('.records b')?.textContent === {json.dumps(HOSTILE)}")
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    picture(page, "console-records")
    page.fill("input[name=where]", "celsius >")
    page.press("Enter")
    page.wait_text("where:", ".note.bad")
    page.fill("input[name=where]", "")
    page.press("Enter")
    page.wait("document.querySelectorAll('.records li').length > 20")
    page.evaluate("document.activeElement.blur()")
    page.press("p")
    page.wait_text("Paused; ", "main")
    page.wait(
        "parseInt(document.querySelector('main p.quiet').textContent.match(/; ([0-9,]+)/)[1]) > 5"
    )
    top = page.text(".records li")
    page.press("p")
    page.wait(f"document.querySelector('.records li').innerText !== {json.dumps(top)}")


def test_the_way_of_a_record_is_lit_up_from_its_stream_to_what_became_of_it(page, plant):
    visit(page, plant, f"tail/{plant.name}.readings")
    page.fill("input[name=where]", "celsius = 65.0")
    page.press("Enter")
    page.wait_text('"celsius":65', ".records")
    page.click(".records a")
    page.wait_text(f"{plant.name}.seen", ".way")
    page.wait_text(f"{plant.name}.alarms", ".way")
    page.wait("document.querySelectorAll('.graph .node').length === 8")
    page.wait("document.querySelectorAll('.graph .node.faint.source').length === 1")
    page.wait("document.querySelectorAll('.graph .node.service:not(.faint)').length >= 2")
    assert "watch" in page.text(".way")
    picture(page, "console-way")
    letter = plant.ask("/v1/console/dead-letters")["reasons"][0]["newest"][-1]
    place = f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
    (found,) = plant.ask(f"/v1/console/ways/{place}")["dead_letters"]
    assert (found["part"], found["code"]) == ("watch", "user.raised")


def test_the_state_of_a_service_is_asked_from_its_worker_by_key(page, plant):
    visit(page, plant, "state")
    page.wait_text("tally.total", "main table")
    page.click("main tbody a.name")
    page.wait("document.querySelectorAll('main tbody tr').length === 8")
    page.fill("input[name=prefix]", "device-3")
    page.press("Enter")
    page.wait("document.querySelectorAll('main tbody tr').length === 1")
    assert int(page.text("main tbody td")) > 0
    assert page.evaluate(CONTRAST) == []
    found = plant.ask("/v1/console/states/tally.total?prefix=device-3")
    assert [each["key"] for each in found["rows"]] == ["device-3"]
    page.click(".fields button[type=button]")
    page.wait_text("owned by the worker at", "main")
    assert int(page.text("pre.code")) > 0


def test_windows_show_their_panes_as_they_came_and_how_late_records_were(page, plant):
    visit(page, plant, "windows")
    page.wait_text("the lateness is over", "main")
    page.wait("document.querySelectorAll('.picture rect').length >= 1")
    page.wait_text("1h to a day", ".picture")
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-late")
    page.click("main tbody a.name")
    page.wait("document.querySelectorAll('.panes .early').length > 3")
    page.wait("document.querySelectorAll('.panes .withdrawn').length > 3")
    page.wait("document.querySelectorAll('.panes .late').length > 0")
    page.fill("input[name=key]", "device-1")
    page.press("Enter")
    page.wait("document.querySelectorAll('.panes li').length > 3")
    heads = "[...document.querySelectorAll('.card h2')].map((e) => e.innerText)"
    page.wait(f"{heads}.length > 2 && {heads}.every((text) => text.startsWith('device-1'))")
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-windows")


def test_connectors_are_shown_with_their_rates_and_where_they_are(page, plant):
    visit(page, plant)
    page.wait_text("live", ".wire")
    page.press("9")
    page.wait_text("lines of readings.jsonl", "main table")
    page.wait("document.querySelectorAll('main td svg.spark').length === 1")
    page.wait(
        "Number(document.querySelector('main td small b')?.innerText.match(/[0-9]+/)?.[0]) > 0"
    )
    assert page.evaluate(CONTRAST) == []
    assert "Live queries" not in page.text("nav")
    picture(page, "console-connectors")


def test_sql_is_asked_and_watched_and_shown_as_rows_and_as_a_picture(page, plant):
    visit(page, plant, "sql")
    page.wait_text("tally.total", "main table")
    page.fill("textarea", f"select * from `{plant.name}.seen` order by readings desc")  # noqa: S608
    page.evaluate("[...document.querySelectorAll('form button')][1].click()")
    page.wait("document.querySelectorAll('section tbody tr').length === 8")
    page.wait(f"document.querySelector('section table').innerText.includes({json.dumps(HOSTILE)})")
    assert page.evaluate("window.broken") is None
    page.wait_text("it changed", "form .quiet")
    picture(page, "console-sql")
    page.evaluate("document.querySelectorAll('section button')[1].click()")
    page.wait("document.querySelectorAll('.picture rect').length === 8")
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-sql-picture")
    page.click("form button[type=submit]")
    page.wait_text("rows, at most", "form .quiet")
    page.fill("textarea", "select nothing from nowhere")
    page.click("button[type=submit]")
    page.wait_text("nowhere", ".note.bad")
    assert all("400" in each for each in page.errors)
    page.errors.clear()


def test_groups_have_members_and_their_lag_by_partition(page, plant):
    visit(page, plant, "groups")
    page.fill("main input", "tally")
    page.wait_text("1 of", "main .bar")
    page.click("main tbody a.name")
    page.wait("document.querySelectorAll('main tbody tr').length >= 3")
    page.wait("document.querySelectorAll('main td svg.spark').length === 2")
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-group")


def test_dead_letters_stand_by_reason_with_what_they_hold_as_text(page, plant):
    visit(page, plant, "dead-letters")
    page.wait_text("cannot be so hot", ".card .why")
    page.click(".card summary")
    page.wait(f"document.querySelector('.card b')?.textContent === {json.dumps(HOSTILE)}")
    assert page.evaluate("window.broken") is None
    assert page.evaluate(CONTRAST) == []
    picture(page, "console-dead-letters")
    (found,) = plant.ask("/v1/console/dead-letters")["reasons"]
    assert (found["part"], found["code"]) == ("watch", "user.raised")
    assert json.loads(found["newest"][0]["value"])["celsius"] == 999.0
    # What the cause was is mended; first a try, and then with the key of the run.
    (plant.directory / "mended").touch()
    page.click(".giving button")
    page.wait_text("Nothing was written yet", ".giving .note")
    page.wait_text("Every part that reads it gets them once more: ", ".giving .note")
    assert "has not the key" in page.text(".giving .bar")
    page.open(f"{plant.address}/#key={plant.key}")
    page.wait("location.hash === '#/'")
    page.evaluate("location.hash = '#/dead-letters'")
    page.click(".giving button")
    page.click(".giving button.strong")
    page.wait_text("went back", ".giving .note.good")
    picture(page, "console-given-back")
    assert page.evaluate(CONTRAST) == []
    page.wait_text("of them given back", ".card h2")
    (found,) = plant.ask("/v1/console/dead-letters")["reasons"]
    assert 0 < found["given_back"] <= found["count"]
    page.press("1")
    page.wait_text("were given back to", "ol.line")


def test_a_record_is_written_by_hand_and_checked_by_the_type_of_its_stream(page, plant):
    page.open(f"{plant.address}/#key={plant.key}")
    page.wait("location.hash === '#/'")
    page.evaluate(f"location.hash = '#/tail/{plant.name}.readings'")
    page.click("details.write summary")
    page.fill(
        "details.write textarea",
        '{"device": "by-hand", "celsius": "warm", "at": "2026-01-01T00:00:00Z"}',
    )
    page.click("details.write button")
    page.wait_text("celsius", "details.write .note.bad")
    page.fill(
        "details.write textarea",
        '{"device": "by-hand", "celsius": 71.5, "at": "2026-01-01T00:00:00Z"}',
    )
    page.click("details.write button")
    page.wait_text("It stands at", "details.write")
    page.wait_text("by-hand", ".records")
    assert page.evaluate(CONTRAST) == []
    assert all("422" in each for each in page.errors)
    page.errors.clear()


def test_the_log_of_a_part_is_shown_as_it_is_written(page, plant):
    visit(page, plant, "part/watch")
    page.click("a.button")
    page.wait("location.hash === '#/log/watch'")
    page.wait_text("watch.log", "main .bar")
    with (plant.directory / ".penstock" / "logs" / "watch.log").open("a") as file:
        file.write("a line <b>of ours</b>\n")
    page.wait("document.querySelector('.log li')?.innerText === 'a line <b>of ours</b>'")
    picture(page, "console-log")


def test_penstock_console_shows_the_runs_of_a_project_and_goes_on_without_them(page, plant):
    with plant.beside("console") as address:
        page.open(f"{address}/")
        page.wait_text("All 4 parts are well", "main")
        page.wait_text("penstock console", "#head")
        found = plant.ask("/v1/console/now", address=address)
        (run,) = found["runs"]
        assert (run["app"], run["command"]) == ("plant", "dev")
        assert f"tally#{run['pid']}" in {each["key"] for each in found["parts"]}
        topics = plant.ask("/v1/console/topics", address=address)["topics"]
        assert f"{plant.name}.readings" in {each["topic"] for each in topics}
        plant.stop()
        page.wait_text("Nothing runs", ".verdict-box")
        page.wait_text("has ended", "ol.line")
        plant.start()
        page.wait_text("All 4 parts are well", "main")


def test_the_page_is_small_and_says_what_it_may_do(page, plant):
    page.evaluate("performance.clearResourceTimings()")
    visit(page, plant)
    page.wait_text("live", ".wire")
    sizes = page.evaluate(
        "performance.getEntriesByType('resource').filter((e) => !e.name.includes('/v1/'))"
        ".map((e) => [e.name, e.decodedBodySize])"
    )
    assert len(sizes) > 5
    assert sum(size for _, size in sizes) < MOST_PAGE_BYTES
    assert page.evaluate(
        "fetch('/').then((answer) => answer.headers.get('content-security-policy'))"
    ).startswith("default-src 'none'")
