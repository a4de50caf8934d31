import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from penstock.cli.status.page import StatusPage
from penstock.core.status.status import PartStatus, RunStatus, decode_status
from penstock.errors import ConfigurationError
from penstock.machine.ports import free_ports
from penstock.serving.desk.desk import CONNECTIONS

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def port():
    return free_ports(1)[0]


def ask(page, path):
    try:
        with urllib.request.urlopen(page.address + path, timeout=60) as answer:  # noqa: S310 - our own
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def status(*states):
    parts = (
        PartStatus(process="0", part="count", kind="service", state=state, since_seconds=1.0)
        for state in states
    )
    return RunStatus(app="plant", command="run", pid=1, started_at=AT, parts=tuple(parts))


def test_metrics_health_and_status_are_served_as_they_are_when_asked(port):
    now = [status()]
    with StatusPage(lambda: now[0], port=port) as page:
        assert page.address == f"http://127.0.0.1:{port}"
        assert ask(page, "/health")[0] == 503
        now[0] = status("running")
        code, body = ask(page, "/health")
        assert (code, msgspec.json.decode(body)["healthy"]) == (200, True)
        now[0] = status("degraded")
        assert ask(page, "/health")[0] == 503
        labels = b'{app="plant",part="count",process="0"}'
        assert b"penstock_up" + labels + b" 0\n" in ask(page, "/metrics")[1]
        assert decode_status(ask(page, "/status")[1]) == now[0]
        assert ask(page, "/health?verbose=1")[0] == 503
        assert ask(page, "/else")[0] == 404


def test_without_a_port_any_free_one_is_taken():
    with StatusPage(status, port=0) as one, StatusPage(status, port=0) as other:
        assert ask(one, "/status")[0] == ask(other, "/status")[0] == 200
        assert one.port != other.port


@pytest.mark.parametrize("wrong", ["taken", "none"])
def test_a_port_that_cannot_be_listened_on_is_told(port, wrong):
    with StatusPage(status, port=port):
        chosen = port if wrong == "taken" else 70_000
        with pytest.raises(ConfigurationError, match=f"cannot listen on .*{chosen}"):
            StatusPage(status, port=chosen)


def connect(page):
    return socket.create_connection(("127.0.0.1", page.port), timeout=60)


def all_of(connection):
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_connections_that_never_ask_lock_nobody_out_and_hold_few_files():
    with StatusPage(lambda: status("running"), port=0) as page, ExitStack() as stack:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(1, 401):
            slow = stack.enter_context(connect(page))
            slow.sendall(b"GET /status HTTP/1.1\r\nX-A: ")
            if number % 100 == 0:
                assert ask(page, "/status")[0] == 200
        after = len(list(Path("/proc/self/fd").iterdir()))
        # Ours, and no more of the page's than it has room for.
        assert after - before <= 400 + 3 * CONNECTIONS


def test_a_request_has_a_deadline_however_it_drips(monkeypatch):
    monkeypatch.setattr("penstock.serving.desk.desk.HEAD_SECONDS", 0.3)
    with StatusPage(lambda: status("running"), port=0) as page, connect(page) as slow:
        slow.settimeout(0.05)
        closed = False
        for _ in range(1200):
            try:
                slow.sendall(b"G")
                closed = slow.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
            if closed:
                break
        assert closed


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /status HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", 200),
        (b"GET /status HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 200),
        (b"GET /status HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200),
        (b"GET /status HTTP/1.1\r\nHost: metrics.example:80\r\n\r\n", 200),
        (b"GET /status HTTP/1.0\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\nHost: [::1\r\n\r\n", 421),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET //status HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /status?[#a HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"POST /status HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET /\x1b[2J HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
)
def test_only_a_short_request_for_a_name_of_this_machine_is_answered(head, code):
    options = {"read_status": lambda: status("running"), "port": 0, "hosts": ["metrics.example"]}
    with StatusPage(**options) as page, connect(page) as connection:
        connection.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = all_of(connection)
        assert answer.startswith(b"HTTP/1.1 %d " % code)
        assert b"\x1b" not in answer


@pytest.mark.parametrize("path", [b"/status", b"/metrics", b"/health", b"/else"])
def test_head_is_answered_as_get_without_the_body(path):
    answers = {}
    with StatusPage(lambda: status("running"), port=0) as page:
        for method in (b"GET", b"HEAD"):
            with connect(page) as connection:
                connection.sendall(
                    method
                    + b" "
                    + path
                    + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                answers[method] = all_of(connection).partition(b"\r\n\r\n")
    (head, end, body), (bare, bare_end, nothing) = (answers[each] for each in (b"GET", b"HEAD"))
    assert body
    assert f"content-length: {len(body)}".encode() in head
    assert (undated(bare), bare_end, nothing) == (undated(head), end, b"")


def undated(head):
    return [line for line in head.split(b"\r\n") if not line.startswith(b"date:")]


def test_a_status_that_cannot_be_told_is_an_error_and_the_page_goes_on():
    found = [None, status("running")]
    with StatusPage(lambda: found.pop(0), port=0) as page:
        assert ask(page, "/health")[0] == 500
        assert ask(page, "/health")[0] == 200
