"""The client against servers that end, stall and talk nonsense, over real sockets."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from penstock.client.connection import Request
from penstock.client.limits import ClientLimits
from penstock.client.wire import Wire, address_of
from penstock.errors import ConfigurationError, TransientError

LIMITS = ClientLimits(
    attempts=3,
    first_wait=timedelta(milliseconds=1),
    longest_wait=timedelta(milliseconds=2),
    patience=timedelta(seconds=20),
    answer_bytes=1000,
)
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = Request(method="GET", target="/x")


class Server:
    """Answers each request with the next of some bytes, and ends where there are none."""

    def __init__(self, *answers, ends=False):
        self.answers = list(answers)
        self.ends = ends
        self.heads = []
        self.connections = 0
        self.tasks = []

    async def serve(self, reader, writer):
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                answer = self.answers.pop(0) if self.answers else b""
                writer.write(answer)
                await writer.drain()
                if not answer or self.ends:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            await ended(writer)


async def ended(writer):
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def ask(server, request=GET, *, limits=LIMITS, token=None, times=1, **options):
    async def talk():
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        wire = Wire(address_of(f"http://127.0.0.1:{port}"), token=token, limits=limits)
        try:
            return [await wire.ask(request, **options) for _ in range(times)]
        finally:
            await wire.close()
            await asyncio.gather(*server.tasks)
            listening.close()

    return asyncio.run(talk())


def test_a_connection_is_used_again():
    server = Server(GOOD, GOOD, GOOD)
    assert [reply.body for reply in ask(server, times=3)] == [b"ok"] * 3
    assert server.connections == 1


def test_a_connection_that_ended_is_not_used_again():
    server = Server(GOOD, GOOD, ends=True)
    assert len(ask(server, times=2)) == 2
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
    ],
)
def test_nonsense_is_a_broken_connection_and_the_request_is_sent_again(answer):
    server = Server(answer, GOOD, ends=True)
    assert ask(server)[0].body == b"ok"
    with pytest.raises(TransientError) as broken:
        ask(Server(*[answer] * 3, ends=True))
    assert broken.value.code == "client.broken"


def test_a_server_that_says_nothing_is_given_up():
    class Silent(Server):
        async def serve(self, reader, writer):
            self.connections += 1
            self.tasks.append(asyncio.current_task())
            with suppress(OSError):
                await reader.read(-1)
            await ended(writer)

    server = Silent()
    silent = ClientLimits(
        attempts=2, silence_timeout=timedelta(milliseconds=20), first_wait=timedelta(0)
    )
    with pytest.raises(TransientError) as error:
        ask(server, limits=silent)
    assert (error.value.code, server.connections) == ("client.silence", 2)


def test_what_is_refused_for_now_is_tried_again_as_late_as_it_says():
    busy = b"HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
    assert ask(Server(busy, busy, GOOD))[0].status == 200
    later = busy.replace(b"After: 0", b"After: 3600")
    server = Server(later, GOOD)
    with pytest.raises(TransientError) as error:
        ask(server)
    assert (error.value.code, len(server.heads)) == ("http.503", 1)


def test_what_is_refused_for_good_is_not_tried_again():
    server = Server(b"HTTP/1.1 302 No\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", GOOD)
    with pytest.raises(ConfigurationError):
        ask(server)
    assert len(server.heads) == 1


def test_an_answer_that_is_too_large_is_not_held():
    with pytest.raises(TransientError) as error:
        ask(Server(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000))
    assert error.value.code == "client.too-large"


def test_answers_that_are_only_on_the_way_are_not_the_answer():
    assert ask(Server(b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD))[0].status == 200


def test_nobody_there_is_told_after_the_attempts():
    async def talk():
        wire = Wire(address_of("http://127.0.0.1:1"), token=None, limits=LIMITS)
        await wire.ask(GET)

    with pytest.raises(TransientError) as error:
        asyncio.run(talk())
    assert error.value.code == "client.unreachable"


def test_a_token_is_asked_for_each_request_and_is_one_word():
    tokens = iter(["one", "two"])
    server = Server(GOOD, GOOD)
    ask(server, token=lambda: next(tokens), times=2)
    assert ["Bearer one" in server.heads[0], "Bearer two" in server.heads[1]] == [True, True]
    for token in ("", "a b", "a\r\nX: y", "é"):
        with pytest.raises(ConfigurationError) as error:
            ask(Server(GOOD), token=token)
        assert error.value.code == "client.token"
        assert token not in str(error.value) or not token


@pytest.mark.parametrize(
    "url", ["", "localhost:1", "ftp://a", "http://", "http://a:99999", "http://a/?b", "http://u@a"]
)
def test_what_is_no_address_is_refused_at_once(url):
    with pytest.raises(ConfigurationError) as error:
        address_of(url)
    assert error.value.code == "client.url"


def test_a_base_path_and_a_port_are_kept():
    address = address_of("https://[::1]/behind/proxy/")
    assert (address.name, address.base, address.tls is None) == (
        "[::1]:443",
        "/behind/proxy",
        False,
    )
