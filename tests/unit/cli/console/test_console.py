"""The console over HTTP: a page that stands alone, and JSON that anyone can have."""

import http.client
import re
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

import msgspec
import pytest

from penstock import App, record
from penstock.cli.console.console import ConsolePage
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.look import Look, keyed
from penstock.cli.console.reach import Reach
from penstock.cli.status.page import StatusPage
from penstock.console import PAGE
from penstock.core.settings.configuration import GivenValue, Layer, resolve
from penstock.core.status.exposition import CATALOGUE
from penstock.core.status.status import PartStatus, RunStatus

MOST_PAGE_BYTES = 300_000


@record(key="word")
class Word:
    word: str


KEY = "the-key-of-the-run"


@pytest.fixture(params=[KEY])
def address(request):
    app = App("plant")
    words = app.stream("words", Word)
    kept = app.stream("kept", Word)
    app.service(reads=words, writes=kept, name="keep")(lambda word: word)
    part = PartStatus(
        process="keep",
        part="keep",
        kind="service",
        state="running",
        since_seconds=1,
        metrics={'panes_total{kind="early"}': 2.0},
    )
    given = {"kafka.sasl_password": GivenValue("hunter2", "PENSTOCK_KAFKA_SASL_PASSWORD")}
    settings = resolve([Layer("environment", given)]).resolved
    run = RunStatus(
        app="plant",
        command="dev",
        pid=1,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        parts=(part,),
    )

    def look():
        return Look(time.time(), [run], keyed([run], several=False))

    console = ConsolePage(
        look,
        app="plant",
        command="dev",
        reach=Reach(log=LogWatcher(lambda: None), graph=lambda: app.graph),
        settings=lambda: settings,
        key=request.param,
    )
    with console, StatusPage(lambda: run, port=0, more=console.offers) as page:
        console.tell("the broker died")
        yield page.address


def ask(address):
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - our own
        return answer.headers, answer.read()


def test_the_page_is_served_whole_small_and_with_nothing_from_elsewhere(address):
    headers, body = ask(f"{address}/")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert b'<script type="module" src="/app.js">' in body
    files = sorted(path for path in PAGE.rglob("*") if path.is_file())
    for file in files:
        assert ask(f"{address}/{file.relative_to(PAGE).as_posix()}")[1] == file.read_bytes()
    assert sum(file.stat().st_size for file in files) < MOST_PAGE_BYTES
    for file in files:
        text = file.read_text(encoding="utf-8")
        elsewhere = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+/?", text)) - {"http://www.w3.org/"}
        assert not elsewhere, file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize("name", ["../presence.py", "..%2f__init__.py", ".git/config", "views"])
def test_no_other_file_is_served(address, name):
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(f"{address}/{name}")
    with refused.value as answer:
        assert answer.code == 404


def test_what_the_page_shows_anyone_can_have(address):
    found = {
        name: msgspec.json.decode(ask(f"{address}/v1/console/{name}")[1])
        for name in ("about", "now", "history", "happened", "graph", "parts/keep", "settings")
    }
    assert found["about"]["app"] == "plant"
    assert found["now"]["summary"] == "its part is well"
    assert found["happened"][-1]["text"] == "the broker died"
    assert found["history"]["series"]["keep"]["in"] == [0.0]
    assert {each["name"] for each in found["graph"]["nodes"]} == {"words", "keep", "kept"}
    assert found["parts/keep"]["metrics"] == {"panes_total": {"early": 2.0}}
    assert found["parts/keep"]["about"] == {"panes_total": CATALOGUE["panes_total"]}
    secret = next(each for each in found["settings"] if each["key"] == "kafka.sasl_password")
    assert (secret["value"], secret["layer"]) == ("***", "environment")
    assert [(each["start"], each["end"]) for each in found["graph"]["edges"]] == [
        ("words", "keep"),
        ("keep", "kept"),
    ]


def events(address, after=""):
    """Yield the events of the stream: their kind, number and document."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.request("GET", "/v1/console/live", headers={"Last-Event-ID": after} if after else {})
    answer = connection.getresponse()
    event = {}
    try:
        while line := answer.readline().decode().rstrip("\n") or "end":
            if line == "end":
                if "data" in event:
                    yield event["event"], event.get("id", ""), msgspec.json.decode(event["data"])
                event = {}
            else:
                name, _, text = line.partition(": ")
                event[name] = text
    finally:
        connection.close()


def test_everything_is_pushed_and_goes_on_after_a_number(address):
    seen, number = {}, ""
    for kind, id_, document in events(address):
        seen.setdefault(kind, document)
        number = id_ or number
        if kind == "now":
            break
    assert list(seen) == ["about", "history", "happened", "now"]
    assert [each["text"] for each in seen["happened"]][-1] == "the broker died"
    again = []
    for kind, _, _ in events(address, after=number):
        again.append(kind)
        if again.count("now") == 2:
            break
    assert "happened" not in again
    for kind, _, document in events(address, after="another-run-99"):
        if kind == "happened":
            assert document[-1]["text"] == "the broker died"
            break


def test_while_the_log_is_away_it_is_said_and_the_rest_goes_on(address):
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(f"{address}/v1/console/topics")
    with refused.value as answer:
        assert answer.code == 503
        assert "the log is not there yet" in msgspec.json.decode(answer.read())["detail"]
    assert msgspec.json.decode(ask(f"{address}/v1/console/now")[1])["well"]


RIGHT = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
WORD = b'{"value": {"word": "hi"}}'


def post(address, path, *, headers, body=b"{}"):
    """Return the status and the code of the answer to a POST."""
    request = urllib.request.Request(  # noqa: S310 - our own
        f"{address}/v1/console/{path}", data=body, headers=headers, method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)  # noqa: S310 - our own
    with refused.value as answer:
        return answer.code, msgspec.json.decode(answer.read())["code"]


@pytest.mark.parametrize("address", [""], indirect=True)
def test_a_console_that_has_no_key_only_reads_whoever_asks(address):
    for headers in ({}, RIGHT, RIGHT | {"Authorization": "Bearer "}):
        assert post(address, "give-back", headers=headers) == (403, "console.reads-only")
    assert msgspec.json.decode(ask(f"{address}/v1/console/about")[1])["writes"] is False


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"Authorization": ""}, (401, "console.key")),
        ({"Authorization": "Bearer no"}, (401, "console.key")),
        ({"Authorization": f"Basic {KEY}"}, (401, "console.key")),
        ({"Origin": "http://evil.example"}, (403, "origin.foreign")),
        ({"Origin": "null"}, (403, "origin.foreign")),
        ({"Sec-Fetch-Site": "cross-site"}, (403, "origin.foreign")),
        ({"Sec-Fetch-Site": "same-site"}, (403, "origin.foreign")),
        ({"Host": "evil.example"}, (421, "host.unknown")),
        ({"Content-Type": "text/plain"}, (415, "body.type")),
        ({}, (503, "console.no-log")),
    ],
)
def test_only_who_has_the_key_may_write_and_no_page_of_others(address, changed, refusal):
    assert post(address, "give-back", headers=RIGHT | changed) == refusal
    if refusal[0] != 503:
        assert post(address, "records/words", headers=RIGHT | changed, body=WORD) == refusal


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("give-back", b"[]", (400, "body.wrong")),
        ("give-back", b"[" * 10_000, (400, "body.wrong")),
        ("give-back", b'{"part": 7}', (400, "query.wrong")),
        ("give-back", b'{"record": "words"}', (400, "query.wrong")),
        ("give-back", b'{"again": 1}', (400, "query.wrong")),
        ("give-back", b" " * (2 << 20), (413, "body.too-large")),
        ("records/others", WORD, (404, "topic.not-in-app")),
        ("records/words", b'{"value": {"word": 7}}', (422, "data.wrong-type")),
        ("records/words", b"{}", (422, "data.wrong-type")),
        ("records/words", WORD, (503, "console.no-log")),
    ],
)
def test_what_is_to_be_written_is_looked_at_before_anything_is(address, path, body, refusal):
    assert post(address, path, headers=RIGHT, body=body) == refusal
