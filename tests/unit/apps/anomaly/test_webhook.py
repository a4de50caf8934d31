"""The webhook, with a real HTTP server: each notice once for whoever minds the key."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from apps.anomaly.webhook import Webhook

from penstock.connectors import Row
from penstock.errors import ConfigurationError, TransientError

ROWS = [Row(None, b'{"text":"is failing"}', 3), Row(None, b'{"text":"is off"}', 4)]


class Listener(HTTPServer):
    """A server that keeps what it got, and answers as it is told."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Listening)
        self.got = []
        self.answer = 204


class Listening(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.headers["idempotency-key"], body))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *_): ...


@pytest.fixture
def server():
    with Listener() as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield listening
        listening.shutdown()
        thread.join(30)


@pytest.fixture
def webhook(server):
    return Webhook(f"http://127.0.0.1:{server.server_port}/told")


def test_each_notice_is_posted_with_a_key_that_is_the_same_when_it_is_sent_again(server, webhook):
    webhook.open(None).write(1, ROWS, 5)
    webhook.write(1, ROWS[1:], 5)
    assert server.got == [("1-3", ROWS[0].value), ("1-4", ROWS[1].value), ("1-4", ROWS[1].value)]


def test_who_is_away_is_waited_for_and_who_refuses_is_named(server, webhook):
    server.answer = 503
    with pytest.raises(TransientError, match="503"):
        webhook.write(0, ROWS, 5)
    server.answer = 404
    with pytest.raises(ConfigurationError, match="404"):
        webhook.write(0, ROWS, 5)
    with pytest.raises(TransientError, match="away"):
        Webhook("http://127.0.0.1:1/").write(0, ROWS, 5)


def test_what_is_no_url_is_a_problem_and_its_secrets_are_not_shown():
    assert Webhook("file:///etc/passwd").problems
    told = Webhook("https://hooks.example/secret-token")
    assert (told.problems, told.describe()) == ((), "a webhook at hooks.example")
