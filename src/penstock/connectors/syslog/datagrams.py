"""Messages over UDP: one in each datagram, which nobody sends again."""

import errno
import socket
import struct

from penstock.connectors.connector import Feed
from penstock.connectors.syslog.frames import Reader
from penstock.errors import ConfigurationError

__all__ = ["DatagramServer"]

_LARGEST_DATAGRAM = 64 << 10
_BUFFER = 4 << 20
"""How many bytes the kernel is asked to hold while the log is slow; it may grant less."""
_OVERFLOW = getattr(socket, "SO_RXQ_OVFL", 40)
"""Linux tells with each datagram how many were dropped before it."""
_LOOK_UP_SECONDS = 0.1
_AT_ONCE = 500
_COUNT = struct.Struct("I")


class DatagramServer:
    """A socket that datagrams come to, read in one thread."""

    def __init__(self, reader: Reader, feed: Feed, *, host: str, port: int) -> None:
        self._reader, self._feed = reader, feed
        self._taken = self._dropped = 0
        self._socket = _bound(host, port)
        shown, number = self._socket.getsockname()[:2]
        feed.tell("listening on", f"{shown}:{number} (UDP)")

    def turn(self) -> None:
        """Take what has come, or wait a moment."""
        self._socket.settimeout(_LOOK_UP_SECONDS)
        for _ in range(_AT_ONCE):
            try:
                data, about, _, sender = self._socket.recvmsg(
                    _LARGEST_DATAGRAM, socket.CMSG_SPACE(_COUNT.size)
                )
            except (TimeoutError, BlockingIOError):
                break
            self._socket.settimeout(0.0)
            self._take(data, str(sender[0]), about)
        self._feed.settle()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _take(self, data: bytes, sender: str, about: list[tuple[int, int, bytes]]) -> None:
        for level, kind, value in about:
            if (level, kind) == (socket.SOL_SOCKET, _OVERFLOW):
                self._note(_COUNT.unpack(value[: _COUNT.size])[0])
        largest = self._reader.largest
        if not data:
            return
        message = self._reader.item(
            data[:largest].rstrip(b"\n\r\0") if len(data) <= largest else data[:largest],
            at=self._taken,
            sender=sender,
            length=len(data) if len(data) > largest else None,
        )
        self._taken += 1
        self._feed.put(message)

    def _note(self, dropped: int) -> None:
        """Tell of datagrams that the kernel had no room for."""
        if dropped != self._dropped:
            self._dropped = dropped
            text = f"{dropped} datagrams were dropped because they were not read in time"
            self._feed.tell("dropped", str(dropped))
            self._feed.complain(f"{text}: use TCP, or several sources")


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        try:
            _ask_for(made)
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            code="source.cannot-listen",
            hint="a port below 1024 needs a right; 0 takes any that is free",
        ) from error
    return made


def _ask_for(made: socket.socket) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    try:
        made.setsockopt(socket.SOL_SOCKET, _OVERFLOW, 1)
    except OSError as error:
        if error.errno not in (errno.ENOPROTOOPT, errno.EINVAL):
            raise  # else the system cannot count what it drops
