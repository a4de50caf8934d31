"""Records over HTTP against a real server that refuses, is slow, goes away and answers wrongly."""

import base64
import hashlib
import hmac
import json
import threading

import pytest
from tests.scriptedhttp import serving

from penstock import App, record
from penstock.connectors import Row, http_poll, webhook
from penstock.connectors.connector import RowsRefusedError
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink


@record()
class Small:
    n: int


def rows(*numbers: int) -> list[Row]:
    return [Row(Small(n), b'{"n":%d}' % n, n) for n in numbers]


def opened(connector):
    app = App("shop")
    return connector.open(app.sink("s", connector, reads=app.stream("small", Small)))


def test_a_batch_is_one_signed_request_with_a_name_that_stays(monkeypatch):
    monkeypatch.setenv("TEST_HOOK", "open sesame")
    asked = []

    def answer(method, headers, body):
        asked.append((method, headers, body))
        return (503 if len(asked) == 1 else 204), {}, b""

    with serving(answer) as url:
        made = webhook(url, secret="env:TEST_HOOK", headers={"Authorization": "env:TEST_HOOK"})
        writer = opened(made)
        with pytest.raises(TransientError) as later:
            writer.write(3, rows(7, 9), 10)
        writer.write(3, rows(7, 9), 10)
        writer.close()
    assert later.value.code == "connector.away"
    (_, first, body), (method, headers, again) = asked
    assert (method, body, again) == ("POST", b'[{"n":7},{"n":9}]', body)
    assert first["webhook-id"] == headers["webhook-id"] == "small-3-7-10"
    content = f"small-3-7-10.{headers['webhook-timestamp']}.".encode() + body
    signed = base64.b64encode(hmac.digest(b"open sesame", content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{signed}"
    assert headers["Authorization"] == "open sesame"
    assert "sesame" not in repr(made)


def test_refused_records_are_found_by_halves_and_the_others_are_posted_once():
    taken = []

    def answer(_method, _headers, body):
        numbers = [each["n"] for each in json.loads(body)]
        if {3, 8} & set(numbers):
            return 422, {}, b"no odd things"
        taken.extend(numbers)
        return 200, {}, b"ok"

    with serving(answer) as url:
        writer = opened(webhook(url))
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, rows(*range(10)), 10)
        assert refused.value.refusals == {
            3: "HTTP 422: no odd things",
            8: "HTTP 422: no odd things",
        }
        writer.write(0, rows(0, 1, 2, 4, 5, 6, 7, 9), 10)
        writer.close()
    assert sorted(taken) == [0, 1, 2, 4, 5, 6, 7, 9]


def test_a_webhook_passes_the_trial_while_requests_are_cut_off():
    taken, left = [], [0]

    def answer(_method, _headers, body):
        left[0] += 1
        if left[0] % 4 == 0:
            return None, {}, b""
        taken.extend(Small(each["n"]) for each in json.loads(body))
        return 200, {}, b""

    with serving(answer) as url:
        some = [Small(n) for n in range(100)]
        try_sink(webhook(url), some, outside=lambda: taken, clear=taken.clear, runs=2)


@pytest.mark.parametrize("status", [301, 401, 403, 404])
def test_an_answer_that_a_person_must_act_on_ends_the_sink(status):
    with serving(lambda *_: (status, {"Location": "/x"}, b"")) as url:
        writer = opened(webhook(url))
        with pytest.raises(ConfigurationError, match=f"HTTP {status}"):
            writer.write(0, rows(1), 2)
        writer.close()


def test_a_server_that_is_away_or_silent_is_told_as_away():
    hold = threading.Event()

    def silent(*_):
        hold.wait(30)
        return 200, {}, b""

    with serving(silent) as url:
        writer = opened(webhook(url, timeout="100ms"))
        with pytest.raises(TransientError) as slow:
            writer.write(0, rows(1), 2)
        writer.close()
        hold.set()
    writer = opened(webhook("http://127.0.0.1:1/x"))
    with pytest.raises(TransientError) as away:
        writer.write(0, rows(1), 2)
    assert slow.value.code == away.value.code == "connector.away"


class Document:
    """A document with a version, served with or without an entity tag."""

    def __init__(self, content: bytes, *, tagged: bool) -> None:
        self.content, self.tagged, self.sent, self.asked = content, tagged, 0, 0

    def __call__(self, _method, headers, _body):
        self.asked += 1
        tag = f'"{hashlib.sha256(self.content).hexdigest()}"'
        if self.tagged and headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        self.sent += 1
        return 200, ({"ETag": tag} if self.tagged else {}), self.content


@pytest.mark.parametrize("tagged", [True, False])
def test_each_version_of_a_document_is_read_once_also_after_a_restart_in_the_middle(tagged):
    document = Document(b'[{"n":1},{"n":2},{"n":3}]', tagged=tagged)
    now = [0.0]

    def read(reading):
        now[0] += 60
        return [item.content for item in reading.read()]

    with serving(document) as url:
        made = http_poll(url, items="json", every="1m")
        reading = made.open("", None, clock=lambda: now[0])
        items = reading.read()
        assert [item.content for item in items] == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        assert (read(reading), read(reading)) == ([], [])
        assert (document.asked, document.sent) == (3, 1 if tagged else 3)
        position = json.loads(json.dumps(reading.position_after(items[0])))
        whole = json.loads(json.dumps(reading.position_after(items[2])))
        reading.close()
        again = made.open("", position, clock=lambda: now[0])
        assert [item.content for item in again.read()] == [b'{"n":2}', b'{"n":3}']
        document.content = b'[{"n":2}]'
        assert read(again) == [b'{"n":2}']
        assert read(again) == []
        again.close()
        document.content = b'[{"n":1},{"n":2},{"n":3}]'
        after = made.open("", whole, clock=lambda: now[0])
        assert after.read() == []
        after.close()


def test_what_is_no_array_is_a_dead_letter_and_a_page_of_errors_is_told():
    document = Document(b"<html>", tagged=False)
    with serving(document) as url:
        reading = http_poll(url, items="json").open("", None)
        (item,) = reading.read()
        assert "no JSON array" in item.fault().message
        reading.close()
        lines = http_poll(url, items="lines", largest="3B").open("", None)
        with pytest.raises(ConfigurationError, match="more than 3 bytes"):
            lines.read()
        lines.close()
        source = App("a").source("s", http_poll(url), into=App("a").stream("x", Small))
        assert http_poll(url).attempt(source) == "it answers s with 6 bytes"
        hook = App("a").sink("s", webhook(url), reads=App("a").stream("x", Small))
        assert webhook(url).attempt(hook) == "it answers s with HTTP 200"
    with serving(lambda *_: (404, {}, b"nothing here")) as url:
        reading = http_poll(url).open("", None)
        with pytest.raises(ConfigurationError, match="HTTP 404: nothing here"):
            reading.read()
        with pytest.raises(ConfigurationError, match="not a position"):
            http_poll(url).open("", 7)
        reading.close()


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x"},
        {"url": "https://u:sesame@x/"},
        {"url": "https://x/ y"},
        {"url": "https://[x"},
        {"url": "https://x:port/"},
        {"url": "https:///hook"},
        {"url": 3},
        {"headers": {"Authorization": "Bearer sesame"}},
        {"headers": {"a:b": "c"}},
        {"headers": [1]},
        {"secret": "sesame"},
        {"rows": 0},
    ],
)
def test_each_wrong_option_is_a_problem_and_no_secret_is_shown(options):
    app = App("shop")
    app.sink("s", webhook(**{"url": "https://x/", **options}), reads=app.stream("small", Small))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)
