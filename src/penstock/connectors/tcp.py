"""Lines over TCP, from many senders at once.

One thread reads all connections in turn. It reads only while the log takes what was read: when
Kafka is slow or away, the kernel's buffers fill and the senders wait.

The protocol has no acknowledgement, so a sender cannot know what arrived. If the process is killed,
lines that were read but are not yet on the log are lost. There is no encryption and no login:
listen on loopback, or behind something that has both.
"""

import errno
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from penstock.connectors.connector import Feed, Item
from penstock.connectors.lines import LineCutter
from penstock.connectors.options import ConnectorOptions
from penstock.core.units import duration_text
from penstock.errors import ConfigurationError, Problem

__all__ = ["Cutter", "Listening", "TcpLines", "TcpServer", "tcp_lines"]

_MAX_LINE = 64 << 10
_MAX_CONNECTIONS = 256
_LINE_TIMEOUT = timedelta(seconds=30)
_IDLE_TIMEOUT = timedelta(days=1)
_SPARED_SECONDS = 1.0
"""A connection must be silent for this long before it is closed to make room for another."""
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_LAST_PORT = 65_535
_BACKLOG = 64
_READ_BYTES = 64 << 10
_LOOK_UP_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpLines:
    """A listening socket as a source; ``tcp_lines`` makes it."""

    host: str = "127.0.0.1"
    port: int = 0
    max_line: int = _MAX_LINE
    max_connections: int = _MAX_CONNECTIONS
    line_timeout: timedelta = _LINE_TIMEOUT
    idle_timeout: timedelta = _IDLE_TIMEOUT
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: bool = field(default=False, init=False)

    def describe(self) -> str:
        """Return where it listens, for people."""
        return f"lines over TCP, {self.host} port {self.port or 'of its choice'}"

    def cutter(self, sender: str) -> LineCutter:
        """Return what cuts the bytes of one sender into lines."""
        del sender
        return LineCutter(max_line=self.max_line)

    def run(self, feed: Feed) -> None:
        """Listen until the feed stops."""
        with closing(TcpServer(self, feed)) as server:
            while not feed.stop.is_set():
                server.turn()


def tcp_lines(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    max_line: str | int = _MAX_LINE,
    max_connections: int = _MAX_CONNECTIONS,
    line_timeout: str | timedelta = _LINE_TIMEOUT,
    idle_timeout: str | timedelta = _IDLE_TIMEOUT,
) -> TcpLines:
    """Listen for lines over TCP, from many senders.

    A line is written once, in the order of its connection, or lost if the process is killed before
    Kafka acknowledged it. While Kafka is slow, senders wait. A line that is too long, one whose end
    does not come in time, and the half line of a connection that breaks off become dead letters.

    Args:
        host: The address to listen on.
        port: The port; 0 takes a free one, which the status of the source shows.
        max_line: How long a line may be; its first bytes are kept.
        max_connections: How many senders at a time. For one more, the one that was silent for
            longest is closed; if none was silent for a second, the new one is closed instead, and
            the source is degraded.
        line_timeout: How long the end of a line may take; then its connection is closed.
        idle_timeout: How long a connection may send nothing; then it is closed.

    Examples:
        >>> received = app.source("net", tcp_lines(port=9999), into=readings)
    """
    problems: list[Problem] = []
    options = ConnectorOptions("tcp_lines", problems)
    return TcpLines(
        host=options.text("host", host, "127.0.0.1", 'name it, or its address: "127.0.0.1"'),
        port=options.whole("port", port, 0, least=0, most=_LAST_PORT),
        max_line=options.size("max_line", max_line, _MAX_LINE),
        max_connections=options.whole(
            "max_connections", max_connections, _MAX_CONNECTIONS, least=1
        ),
        line_timeout=options.positive_span("line_timeout", line_timeout, _LINE_TIMEOUT),
        idle_timeout=options.positive_span("idle_timeout", idle_timeout, _IDLE_TIMEOUT),
        problems=tuple(problems),
    )


class Cutter(Protocol):
    """Cuts the bytes of one sender into items."""

    @property
    def pending(self) -> int:
        """How many bytes of an item have come whose end has not."""

    def feed(self, data: bytes, /) -> Sequence[Item]:
        """Return the items that these bytes complete, in order."""

    def finish(self) -> Item | None:
        """Return what is held of an item without an end, and forget it."""


class Listening(Protocol):
    """What a server of connections must know."""

    @property
    def host(self) -> str:
        """The address to listen on."""

    @property
    def port(self) -> int:
        """The port, or 0."""

    @property
    def max_connections(self) -> int:
        """How many senders at a time."""

    @property
    def line_timeout(self) -> timedelta:
        """How long the end of an item may take."""

    @property
    def idle_timeout(self) -> timedelta:
        """How long a sender may be silent."""

    def cutter(self, sender: str, /) -> Cutter:
        """Return what cuts the bytes of one sender into items."""


class _Connection:
    """One sender: its socket, its unfinished line, since when that is unfinished, its last sign."""

    __slots__ = ("began_at", "cutter", "heard_at", "sent", "socket")

    def __init__(self, connected: socket.socket, cutter: Cutter, *, now: float) -> None:
        self.socket = connected
        self.cutter = cutter
        self.began_at: float | None = None
        self.heard_at = now
        self.sent = False


class TcpServer:
    """A listening socket and its connections, served in one thread, one turn after another."""

    def __init__(
        self,
        spec: Listening,
        feed: Feed,
        *,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._tls = tls
        self._feed = feed
        self._clock = clock
        self._crowded = False
        self._accepted = self._refused = self._broken = self._evicted = self._idle = 0
        self._listener = _listen(spec.host, spec.port)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        host, port = self._listener.getsockname()[:2]
        feed.tell("listening on", f"{host}:{port}")
        self._tell()

    def turn(self) -> None:
        """Read once from every connection that has data, or wait a moment for one."""
        ready = self._selector.select(_LOOK_UP_SECONDS)
        for key, _ in ready:
            if key.data is None:
                self._accept()
            else:
                self._read(key.data)
        for connection in list(self._overdue()):
            self._end(connection)
        if self._crowded and self._open < self._spec.max_connections:
            self._crowded = False
            self._feed.complain("")
        if not ready:
            self._feed.settle()

    def close(self) -> None:
        """Close the listener and every connection; half lines become dead letters.

        If the feed refuses one, its error is raised, but everything is closed.
        """
        try:
            for connection in list(self._connections()):
                self._end(connection)
        finally:
            for connection in list(self._connections()):
                connection.socket.close()
            self._selector.close()
            self._listener.close()

    def _accept(self) -> None:
        try:
            connected, sender = self._listener.accept()
        except OSError as error:
            if error.errno in _NO_FILES and self._make_room(spared=0.0):
                return  # it still waits to be accepted
            self._refuse(error.strerror or str(error))
            return
        if self._open >= self._spec.max_connections and not self._make_room():
            connected.close()
            self._refuse(f"all {self._open} connections are in use")
            return
        self._accepted += 1
        connected.settimeout(0.0)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._tls is not None:
            try:  # the handshake is made by the first reads
                connected = self._tls.wrap_socket(
                    connected, server_side=True, do_handshake_on_connect=False
                )
            except OSError:  # it has gone already
                connected.close()
                return
        cutter = self._spec.cutter(str(sender[0]))
        connection = _Connection(connected, cutter, now=self._clock())
        self._selector.register(connected, selectors.EVENT_READ, connection)
        self._tell()

    def _make_room(self, *, spared: float = _SPARED_SECONDS) -> bool:
        """Close the connection that was silent for longest; return whether there was one."""
        silent = min(self._connections(), key=lambda one: (one.sent, one.heard_at), default=None)
        if silent is None or self._clock() - silent.heard_at < spared:
            return False
        self._evicted += 1
        self._end(silent)
        return True

    def _refuse(self, why: str) -> None:
        self._refused += 1
        self._crowded = True
        self._feed.complain(
            f"new connections are refused: {why}; raise max_connections, or close some"
        )
        self._tell()

    def _read(self, connection: _Connection) -> None:
        try:
            data = _received(connection.socket)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:  # the sender broke off
            data = b""
        if not data:
            self._end(connection)
            return
        connection.heard_at, connection.sent = self._clock(), True
        lines = connection.cutter.feed(data)
        for line in lines:
            self._feed.put(line)
        if not connection.cutter.pending:
            connection.began_at = None
        elif lines or connection.began_at is None:
            connection.began_at = self._clock()

    def _end(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        with suppress(OSError):
            connection.socket.close()
        if half := connection.cutter.finish():
            self._broken += 1
            self._feed.put(half)
        self._tell()

    def _overdue(self) -> Iterator[_Connection]:
        now = self._clock()
        latest = now - self._spec.line_timeout.total_seconds()
        silent = now - self._spec.idle_timeout.total_seconds()
        for connection in self._connections():
            if connection.began_at is not None and connection.began_at <= latest:
                yield connection
            elif connection.heard_at <= silent:
                self._idle += 1
                yield connection

    def _connections(self) -> Iterator[_Connection]:
        for key in self._selector.get_map().values():
            if key.data is not None:
                yield key.data

    @property
    def _open(self) -> int:
        return len(self._selector.get_map()) - 1

    def _tell(self) -> None:
        text = f"{self._open} open, {self._accepted} so far"
        if self._refused:
            text += f", {self._refused} refused"
        if self._evicted:
            text += f", {self._evicted} silent ones closed to make room"
        if self._idle:
            silence = duration_text(self._spec.idle_timeout)
            text += f", {self._idle} closed after {silence} of silence"
        if self._broken:
            text += f", {self._broken} broken off inside a line"
        self._feed.tell("connections", text)


def _received(connected: socket.socket) -> bytes:
    """Return what has come; of a TLS connection also what is decrypted and waits in it."""
    data = connected.recv(_READ_BYTES)
    if isinstance(connected, ssl.SSLSocket):
        while waiting := connected.pending():
            data += connected.recv(waiting)
    return data


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            code="source.cannot-listen",
            hint="give it another port; 0 takes any that is free",
        ) from error
    listener.settimeout(0.0)
    return listener
