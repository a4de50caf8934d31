import errno
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest

from penstock.connectors import tcp_lines
from penstock.connectors.tcp import TcpServer
from penstock.errors import ConfigurationError, TransientError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(feed, clock):
    spec = tcp_lines(max_line="16B", max_connections=2, line_timeout="30s")
    with closing(TcpServer(spec, feed, clock=clock)) as running:
        yield running


def connected(feed) -> socket.socket:
    host, port = feed.facts["listening on"].rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


def turn_until(server: TcpServer, condition: Callable[[], object]) -> None:
    for _ in range(50):
        if condition():
            return
        server.turn()
    pytest.fail("it did not come about in 50 turns")


def test_lines_of_several_senders_come_in_the_order_of_each(server, feed):
    with connected(feed) as one, connected(feed) as other:
        one.sendall(b"a1\na2\n")
        other.sendall(b"b1\n")
        turn_until(server, lambda: len(feed.lines) == 3)
        one.sendall(b"a3\n")
        turn_until(server, lambda: len(feed.lines) == 4)
    assert [c for c in feed.contents if c.startswith(b"a")] == [b"a1", b"a2", b"a3"]


def test_a_line_may_come_in_pieces(server, feed):
    with connected(feed) as sender:
        sender.sendall(b"to ")
        turn_until(server, lambda: "1 open" in feed.facts["connections"])
        sender.sendall(b"be\n")
        turn_until(server, lambda: feed.lines)
    assert feed.contents == [b"to be"]


def test_the_half_line_of_a_sender_that_breaks_off_is_given_as_such(server, feed):
    with connected(feed) as sender:
        sender.sendall(b"whole\nhalf")
    turn_until(server, lambda: len(feed.lines) == 2)
    assert [(line.content, line.complete) for line in feed.lines] == [
        (b"whole", True),
        (b"half", False),
    ]
    assert feed.facts["connections"] == "0 open, 1 so far, 1 broken off inside a line"


def test_a_line_that_is_too_long_is_cut_and_its_sender_may_go_on(server, feed):
    with connected(feed) as sender:
        sender.sendall(b"x" * 100_000 + b"\nok\n")
        turn_until(server, lambda: len(feed.lines) == 2)
    assert feed.lines[0].too_long
    assert len(feed.lines[0].content) == 16
    assert feed.contents[1] == b"ok"


def test_a_sender_that_never_ends_its_line_is_cut_off(server, feed, clock):
    with connected(feed) as sender:
        for byte in b"slow":
            sender.sendall(bytes([byte]))
            for _ in range(2):
                server.turn()
            clock.now += 10
        turn_until(server, lambda: feed.lines)
        assert sender.recv(1) == b""
    assert (feed.contents, feed.lines[0].complete) == ([b"slow"], False)


def test_a_silent_sender_between_two_lines_is_not_cut_off(server, feed, clock):
    with connected(feed) as sender:
        sender.sendall(b"one\n")
        turn_until(server, lambda: feed.lines)
        clock.now += 3600
        server.turn()
        sender.sendall(b"two\n")
        turn_until(server, lambda: len(feed.lines) == 2)
    assert feed.contents == [b"one", b"two"]


def test_connections_beyond_the_limit_are_closed_and_counted(server, feed):
    with connected(feed), connected(feed), connected(feed) as third:
        turn_until(server, lambda: "refused" in feed.facts["connections"])
        assert third.recv(1) == b""
        assert feed.facts["connections"] == "2 open, 2 so far, 1 refused"
        assert "all 2 connections are in use" in feed.trouble
    turn_until(server, lambda: not feed.trouble)


def test_a_silent_connection_makes_room_for_a_new_one(server, feed, clock):
    with connected(feed) as silent, connected(feed) as sender:
        turn_until(server, lambda: "2 open" in feed.facts["connections"])
        sender.sendall(b"one\n")
        turn_until(server, lambda: feed.lines)
        clock.now += 2
        with connected(feed) as third:
            third.sendall(b"two\n")
            turn_until(server, lambda: len(feed.lines) == 2)
            assert silent.recv(1) == b""
            sender.sendall(b"three\n")
            turn_until(server, lambda: len(feed.lines) == 3)
    assert feed.contents == [b"one", b"two", b"three"]
    assert "1 silent ones closed to make room" in feed.facts["connections"]
    assert not feed.trouble


def test_who_sent_something_stays_before_who_never_did(server, feed, clock):
    with connected(feed) as sender:
        sender.sendall(b"one\n")
        turn_until(server, lambda: feed.lines)
        clock.now += 100
        with connected(feed) as silent:
            turn_until(server, lambda: "2 open" in feed.facts["connections"])
            clock.now += 2
            with connected(feed):
                turn_until(server, lambda: "make room" in feed.facts["connections"])
                assert silent.recv(1) == b""


def test_a_connection_that_sends_nothing_for_the_idle_time_is_closed(feed, clock):
    spec = tcp_lines(idle_timeout="10m")
    with closing(TcpServer(spec, feed, clock=clock)) as server, connected(feed) as silent:
        turn_until(server, lambda: "1 open" in feed.facts["connections"])
        clock.now += 599
        server.turn()
        assert "1 open" in feed.facts["connections"]
        clock.now += 1
        turn_until(server, lambda: "0 open" in feed.facts["connections"])
        assert silent.recv(1) == b""
    assert "1 closed after 10m of silence" in feed.facts["connections"]


def test_where_no_more_files_may_be_opened_a_silent_connection_is_closed(server, feed, monkeypatch):
    with connected(feed) as silent, connected(feed) as second:
        turn_until(server, lambda: "1 open" in feed.facts["connections"])
        accept, full = server._listener.accept, [OSError(errno.EMFILE, "Too many open files")]
        listener = SimpleNamespace(
            accept=lambda: _raise(full.pop()) if full else accept(), close=server._listener.close
        )
        monkeypatch.setattr(server, "_listener", listener)
        second.sendall(b"one\n")
        turn_until(server, lambda: feed.lines)
        assert silent.recv(1) == b""
    assert not feed.trouble


def _raise(error):
    raise error


def test_a_sender_that_is_faster_than_the_feed_has_to_wait(server, feed):
    with connected(feed) as sender:
        sender.settimeout(0.0)
        sent = 0
        with suppress(BlockingIOError):
            while sent < 1 << 30:
                sent += sender.send(b"0123456789\n" * 10_000)
        turn_until(server, lambda: feed.lines)
        assert sent < 1 << 30
        assert len(feed.lines) * 11 < 100_000


def test_what_was_read_is_settled_when_there_is_nothing_more_to_read(server, feed):
    with connected(feed) as sender:
        sender.sendall(b"one\n")
        turn_until(server, lambda: feed.settled == 1)
    assert feed.contents == [b"one"]


def test_stopping_closes_the_connections_and_gives_their_half_lines(feed):
    server = TcpServer(tcp_lines(), feed)
    with connected(feed) as sender:
        sender.sendall(b"half")
        turn_until(server, lambda: "1 open" in feed.facts["connections"])
        server.turn()
        server.close()
        assert sender.recv(1) == b""
    assert feed.contents == [b"half"]


def test_a_feed_that_fails_at_the_end_leaves_nothing_open(feed, monkeypatch):
    def away(line):
        raise TransientError("Kafka is away", code="kafka.unreachable")

    server = TcpServer(tcp_lines(), feed)
    with connected(feed) as one, connected(feed) as other:
        one.sendall(b"half")
        other.sendall(b"half")
        turn_until(server, lambda: "2 open" in feed.facts["connections"])
        server.turn()
        monkeypatch.setattr(feed, "put", away)
        with pytest.raises(TransientError):
            server.close()
        assert one.recv(1) == other.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(feed)


def test_running_ends_when_the_feed_stops(feed):
    feed.stop.set()
    tcp_lines().run(feed)
    assert feed.lines == []


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(feed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"
        ) as caught:
            TcpServer(tcp_lines(port=port), feed)
    assert caught.value.hint


def test_a_host_that_is_not_here_is_an_error_that_names_it(feed):
    with pytest.raises(ConfigurationError, match=r"192\.0\.2\.1"):
        TcpServer(tcp_lines(host="192.0.2.1"), feed)


@pytest.mark.parametrize(
    "options",
    [{"port": 70_000}, {"max_connections": 0}, {"line_timeout": "0s"}, {"line_timeout": "soon"}],
)
def test_a_wrong_option_is_a_problem_of_the_definition(options):
    (problem,) = tcp_lines(**options).problems
    assert (problem.code, problem.place.file) == ("source.option", __file__)


def test_it_listens_on_loopback_unless_told_otherwise():
    assert tcp_lines().host == "127.0.0.1"
    assert tcp_lines(port=9999).describe() == "lines over TCP, 127.0.0.1 port 9999"
