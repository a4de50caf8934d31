"""WebSockets: who may open one, and slow, silent, huge and many clients, on real sockets."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from penstock.serving.application import make_routes
from penstock.serving.http.callers import Callers
from penstock.serving.http.conversation import ConversationLimits, socket_routes
from penstock.serving.http.guard import SUBPROTOCOL, TOKEN_SUBPROTOCOL, Guard, caller_of
from penstock.serving.http.problems import Problem
from penstock.serving.http.protocol import ConnectionLimits, bounded_protocol
from penstock.serving.http.sockets import SocketLimits, bounded_socket

TOKENS = """
[callers.meter-7]
sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
roles = ["meter"]
"""
TOKEN = "secret"  # noqa: S105 - of a test
UNREAD = 64 << 10
heard: list[str] = []


async def echo(conversation):
    if conversation.scope["query_string"] == b"refuse":
        raise Problem(404, "thing.unknown", "there is no such thing")
    await conversation.accept()
    conversation.tell(json.dumps({"caller": caller_of(conversation.scope).name}))
    while (message := await conversation.hear()) is not None:
        if message == "fail":
            raise ValueError(message)
        if message == "refuse":
            raise Problem(422, "message.wrong", "this is no message", path="$.x")
        conversation.tell(message)
    conversation.tell("the last words")


async def flood(conversation):
    await conversation.accept()
    told = 0
    while conversation.tell("x" * 10_000):
        told += 1
        await asyncio.sleep(0)
    heard.append(f"behind after {told}")
    raise Problem(429, "client.slow", "you do not keep up")


@contextlib.contextmanager
def served(callers: Callers, **options) -> Iterator[SimpleNamespace]:
    limits = ConversationLimits(unread_bytes=UNREAD, silence_seconds=5)
    routes = [
        *socket_routes("/v1/echo", echo, limits=limits),
        *socket_routes("/v1/flood", flood, limits=limits),
    ]
    given = {"calls_per_caller": 9, "sockets_per_caller": 3, "origins": ["https://app.example"]}
    app = Guard(make_routes({}, lambda: {"healthy": True}, routes), callers, names=(), **given)
    seconds = options.get("silence", 20.0)
    config = uvicorn.Config(
        app,
        http=bounded_protocol(ConnectionLimits(connections=9, head_seconds=5, silence_seconds=5)),
        ws=bounded_socket(SocketLimits(silence_seconds=seconds, leaving_seconds=5)),
        ws_max_size=100_000,
        ws_ping_interval=seconds / 2,
        ws_ping_timeout=seconds / 2,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
    )
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        yield SimpleNamespace(port=listening.getsockname()[1], server=server)
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="module")
def door():
    with served(Callers("")) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    file.write_text(TOKENS)
    with served(Callers(str(file))) as found:
        yield found


def opened(door, path="/v1/echo", **options):
    return connect(f"ws://127.0.0.1:{door.port}{path}", open_timeout=30, **options)


def refusal(door, path="/v1/echo", **options):
    with pytest.raises(InvalidStatus) as caught, opened(door, path, **options):
        pass
    response = caught.value.response
    document = json.loads(response.body)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.status_code == document["status"]
    return response.status_code, document["code"]


def ending(client):
    """Return the messages up to the end, and its code and reason."""
    messages = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            messages.append(client.recv(timeout=30))
    return messages, client.protocol.close_code, client.protocol.close_reason


def test_messages_go_both_ways_in_order(door):
    with opened(door) as client:
        assert json.loads(client.recv()) == {"caller": "anybody"}
        sent = [f"message {number}" for number in range(500)]
        for each in sent:
            client.send(each)
        assert [client.recv(timeout=30) for _ in sent] == sent
        client.send(["in ", "three ", "fragments"])
        assert client.recv(timeout=30) == "in three fragments"


def test_a_socket_is_refused_with_a_problem_before_it_is_accepted(door):
    assert refusal(door, "/v1/nothing") == (404, "path.unknown")
    assert refusal(door, "/v1/health") == (404, "path.unknown")
    assert refusal(door, "/v1/echo?refuse") == (404, "thing.unknown")
    assert refusal(door, origin="https://evil.example") == (403, "origin.unknown")
    assert refusal(door, origin="null") == (403, "origin.unknown")
    assert refusal(door, subprotocols=["another"]) == (400, "socket.protocol")


def test_pages_of_the_same_host_and_of_named_origins_may_open_a_socket(door):
    for origin in (f"http://127.0.0.1:{door.port}", "https://app.example"):
        with opened(door, origin=origin) as client:
            assert client.recv()


def test_a_host_that_is_not_this_machine_is_refused(door):
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        connection.sendall(handshake(host=b"evil.example"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 421")


def test_a_plain_get_is_told_that_it_is_a_socket(door):
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        connection.sendall(b"GET /v1/echo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 426")


KEY = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
VERSION = b"Sec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (b"GET /v1/echo", VERSION),
        (b"GET /v1/echo", VERSION + b"Sec-WebSocket-Key: short\r\n"),
        (b"GET /v1/echo", VERSION + KEY + KEY),
        (b"GET /v1/echo", b"Sec-WebSocket-Version: 12\r\n" + KEY),
        (b"POST /v1/echo", VERSION + KEY + b"Content-Length: 0\r\n"),
        (b"GET /v1/echo", VERSION + KEY + b"Content-Length: 3\r\n"),
        (b"GET /v1/echo", VERSION + KEY + b"Transfer-Encoding: chunked\r\n"),
        (b"GET /v1/echo", VERSION + KEY + b"x: 1\r\n" * 200),
        (b"GET /v1/echo", VERSION + KEY + b"x: " + b"y" * 9000 + b"\r\n"),
        (b"GET /v1/echo", VERSION + KEY + b"x: " + b"y" * 30_000 + b"\r\n"),
        (b"GET /v1/echo?" + b"q" * 9000, VERSION + KEY),
    ],
)
def test_what_is_no_handshake_is_refused_with_a_problem_and_the_connection_ends(door, line, more):
    head = b" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        connection.sendall(line + head + more + b"\r\n")
        received = b""
        while more := connection.recv(65536):
            received += more
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/problem+json" in head
    assert json.loads(body)["code"] == "socket.handshake"


def test_without_a_token_that_is_known_no_socket_opens(guarded):
    assert refusal(guarded) == (401, "caller.unknown")
    wrong = {"Authorization": "Bearer another"}
    assert refusal(guarded, additional_headers=wrong) == (401, "caller.unknown")
    for text in ("!!", "c2VjcmV0eA", "gA"):
        offered = [SUBPROTOCOL, TOKEN_SUBPROTOCOL + text]
        assert refusal(guarded, subprotocols=offered) == (401, "caller.unknown")


def test_a_token_comes_in_the_header_or_as_a_subprotocol_that_is_not_sent_back(guarded):
    with opened(guarded, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        assert json.loads(client.recv()) == {"caller": "meter-7"}
    text = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
    with opened(guarded, subprotocols=[SUBPROTOCOL, TOKEN_SUBPROTOCOL + text]) as client:
        assert json.loads(client.recv()) == {"caller": "meter-7"}
        assert client.subprotocol == SUBPROTOCOL
        assert text not in str(client.response.headers)


def test_a_caller_has_so_many_sockets(guarded):
    given = {"additional_headers": {"Authorization": f"Bearer {TOKEN}"}}
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(opened(guarded, **given)).recv()
        assert refusal(guarded, **given) == (429, "caller.too-many")

    def free() -> bool:
        with contextlib.suppress(InvalidStatus), opened(guarded, **given) as client:
            return bool(client.recv())
        return False

    deadline = time.monotonic() + 30
    while not free():  # the place of one that has gone
        assert time.monotonic() < deadline


def test_a_problem_ends_a_conversation_with_its_document_and_a_code(door):
    with opened(door) as client:
        client.send("refuse")
        messages, code, reason = ending(client)
        problem = json.loads(messages[-1])["problem"]
        assert (problem["code"], problem["path"], code) == ("message.wrong", "$.x", 1008)
        assert reason == "message.wrong"
    with opened(door) as client:
        client.send("fail")  # a mistake of ours
        assert ending(client)[1:] == (1011, "internal")


def test_messages_that_are_too_large_or_in_too_many_pieces_end_it(door):
    with opened(door) as client:
        with contextlib.suppress(ConnectionClosed):  # it may end before all is sent
            client.send("x" * 100_001)
        assert ending(client)[1] == 1009
    with opened(door) as client:
        client.recv()
        with contextlib.suppress(ConnectionClosed):
            client.send("x" for _ in range(1001))
        assert ending(client)[1:] == (1008, "socket.fragments")


def handshake(path=b"/v1/echo", host=b"localhost"):
    key = base64.b64encode(os.urandom(16))
    return (
        b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (path, host, key)
    )


def accepted(connection):
    connection.sendall(handshake())
    assert connection.recv(65536).startswith(b"HTTP/1.1 101")


def frame(opcode, payload=b""):
    assert len(payload) < 126
    return struct.pack("!BB4s", 0x80 | opcode, 0x80 | len(payload), b"\0\0\0\0") + payload


def test_a_room_is_told_when_its_client_does_not_read(door):
    heard.clear()
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        connection.sendall(handshake(b"/v1/flood"))
        deadline = time.monotonic() + 30
        while not heard:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        received = b""
        while not received.endswith(b"client.slow"):
            more = connection.recv(1 << 20)
            assert more
            received += more
    # What the kernels of both sides hold, the server's buffer, and the queue: no more.
    assert len(received) < 16 << 20


def test_many_small_messages_at_once_are_taken_a_handful_at_a_time(door):
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        count = 20_000
        accepted(connection)
        frames = frame(1, b"m") * count
        sending = threading.Thread(target=connection.sendall, args=(frames,))
        sending.start()
        received = b""
        while received.count(b"\x81\x01m") < count:
            more = connection.recv(1 << 20)
            assert more
            received += more
        sending.join()


def test_pings_of_a_client_that_does_not_read_fill_no_memory(door):
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        accepted(connection)
        connection.settimeout(2)
        pings = frame(9, b"p" * 125) * 8000
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200 << 20:
                sent += connection.send(pings)
        assert sent < 100 << 20  # no more is read from it


def test_a_client_that_answers_no_ping_is_let_go():
    with (
        served(Callers(""), silence=0.4) as door,
        socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection,
    ):
        accepted(connection)
        received = b""
        while more := connection.recv(65536):
            received += more
        assert b"keepalive ping timeout" in received


def test_when_the_gateway_leaves_a_room_has_the_last_words():
    with served(Callers("")) as door, opened(door) as client:
        client.recv()
        door.server.should_exit = True
        messages, code, reason = ending(client)
    assert (messages, code, reason) == (["the last words"], 1012, "gateway.leaving")
