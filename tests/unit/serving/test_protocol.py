"""Connections: slow, silent, huge and many clients, on real sockets."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest
import uvicorn

from penstock.serving.http.protocol import HEAD_BYTES, ConnectionLimits, bounded_protocol

LARGE = b"x" * (32 << 20)
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answer(scope, receive, send):
    body = LARGE if scope["path"] == "/large" else b"ok"
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0)
    limits = ConnectionLimits(connections=4, head_seconds=0.3, silence_seconds=0.3)
    config = uvicorn.Config(
        answer, http=bounded_protocol(limits), ws="none", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(30)


@contextlib.contextmanager
def connected(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        yield connection


def one_answer(connection) -> bytes:
    received = b""
    while not received.endswith(b"\r\n\r\nok"):
        more = connection.recv(65536)
        assert more, received
        received += more
    return received


def rest(connection) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(1 << 20):
            received += more
    return received


def test_a_request_is_answered_and_the_next_one_on_the_same_connection(port):
    with connected(port) as connection:
        for _ in range(2):
            connection.sendall(GET % b"/")
            assert one_answer(connection).endswith(b"ok")


def test_a_head_that_does_not_end_in_time_is_cut_off(port):
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost")
        assert rest(connection) == b""
    with connected(port) as connection:
        assert rest(connection) == b""  # nothing at all was sent


def test_a_head_that_is_too_large_is_refused(port):
    with connected(port) as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(64):
            connection.sendall(b"x" * HEAD_BYTES)
        assert b" 431 " in rest(connection)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /größe HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_with_a_problem_document(port, sent):
    with connected(port) as connection:
        connection.sendall(sent)
        head, _, body = rest(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/problem+json" in head
    assert msgspec.json.decode(body)["code"] == "request.not-http"


def test_a_client_that_does_not_read_is_cut_off(port):
    with connected(port) as connection:
        connection.sendall(GET % b"/large")
        threading.Event().wait(1.0)  # it reads nothing for longer than it may
        assert len(rest(connection)) < len(LARGE)


def test_more_connections_than_allowed_are_refused_and_the_others_go_on(port):
    with contextlib.ExitStack() as stack:
        several = [stack.enter_context(connected(port)) for _ in range(4)]
        for each in several:
            each.sendall(GET % b"/")
            assert one_answer(each).endswith(b"ok")
        with connected(port) as one_more:
            assert rest(one_more).startswith(b"HTTP/1.1 503")
        several[0].sendall(GET % b"/")
        assert one_answer(several[0]).endswith(b"ok")
