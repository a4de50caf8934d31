"""A connection to a broker: where it is, its limits, and who must act when it fails."""

import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from penstock.connectors.connector import AWAY
from penstock.connectors.mqtt.packets import (
    CONNACK,
    DISCONNECT,
    PINGREQ,
    Packet,
    PacketCutter,
    connect,
)
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, is_reference, open_secret, reference
from penstock.errors import ConfigurationError, PenstockError, TransientError

__all__ = ["Address", "Wire", "read_address"]

_TIMEOUT = timedelta(seconds=10)
_READ_BYTES = 256 << 10
_KEEP_ALIVE = 60
_PING_SECONDS = 20.0
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it does not accept the name of the client",
    4: "user or password are wrong",
    5: "the client is not allowed to connect",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a broker is, who connects, and how long it may take."""

    url: str | Reference
    user: str | None = None
    password: Reference | None = None
    authority: str | None = None
    timeout: timedelta = _TIMEOUT

    def open(self, client: str, *, clean: bool, largest: int) -> "Wire":
        """Connect, and wait until the broker has accepted the client."""
        url = self.url.read() if isinstance(self.url, Reference) else self.url
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        if not host or parts.scheme not in _PORTS:
            raise ConfigurationError(
                "the address is none of MQTT", code="connector.refused", hint=_HINT
            )
        word = None if self.password is None else self.password.read()
        user = self.user if self.user is not None or word is None else ""
        try:
            first = connect(client, keep_alive=_KEEP_ALIVE, clean=clean, user=user, password=word)
        except ValueError as error:
            raise ConfigurationError(
                f"MQTT: user or password cannot be sent: {type(error).__name__}",
                code="connector.refused",
            ) from error
        with _explained():
            wire = socket.create_connection((host, port), self.timeout.total_seconds())
            try:
                if parts.scheme == "mqtts":
                    context = ssl.create_default_context(cafile=self.authority)
                    wire = context.wrap_socket(wire, server_hostname=host)
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made = Wire(wire, seconds=self.timeout.total_seconds(), largest=largest)
                made.greet(first)
            except BaseException:
                wire.close()
                raise
        return made


class Wire:
    """One connection: packets in, bytes out."""

    def __init__(
        self,
        connected: socket.socket,
        *,
        seconds: float,
        largest: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._socket, self._seconds, self._clock = connected, seconds, clock
        self._cutter = PacketCutter(largest=largest)
        self._sent_at = self._heard_at = clock()
        self._early: list[Packet] = []
        self.knows_session = False
        """Whether the broker has kept what was agreed before, and messages since then."""

    def greet(self, first: bytes) -> None:
        """Send the first packet, and wait for its answer."""
        self.send(first)
        until = self._clock() + self._seconds
        while not self._early:
            self._early = self.receive(until - self._clock())
            if self._clock() >= until and not self._early:
                raise _away(f"no answer within {self._seconds:g}s")
        answer = self._early.pop(0)
        if answer.kind != CONNACK or len(answer.body) < 2:  # noqa: PLR2004 - flags and code
            raise _away("the broker does not speak MQTT 3.1.1")
        self.knows_session, code = bool(answer.body[0] & 1), answer.body[1]
        if code in _REFUSALS:
            raise ConfigurationError(
                f"MQTT: {_REFUSALS[code]}",
                code="connector.refused",
                hint="penstock check --online tries the connection",
            )
        if code:
            raise _away(f"the broker refuses with code {code}")

    def receive(self, seconds: float = 0.0) -> list[Packet]:
        """Return the packets that have come, waiting for so long at most; keep the line alive."""
        if self._early:
            early, self._early = self._early, []
            return early
        with _explained():
            waiting = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
            if not waiting and not select.select([self._socket], [], [], max(seconds, 0))[0]:
                self._stay_awake()
                return []
            data = self._socket.recv(_READ_BYTES)
        if not data:
            raise _away("the broker has closed the connection")
        self._heard_at = self._clock()
        self._stay_awake()
        return self._cutter.feed(data)

    def send(self, data: bytes) -> None:
        """Send bytes, all of them."""
        if not data:
            return
        with _explained():
            self._socket.sendall(data)
        self._sent_at = self._clock()

    def close(self, *, politely: bool = True) -> None:
        """Close the connection; the broker keeps what it keeps."""
        with suppress(OSError, PenstockError):
            if politely:
                self.send(DISCONNECT)
        with suppress(OSError):
            self._socket.close()

    def _stay_awake(self) -> None:
        now = self._clock()
        if now - self._heard_at > _KEEP_ALIVE:
            raise _away(f"nothing came for {_KEEP_ALIVE} s")
        if now - self._sent_at > _PING_SECONDS:
            self.send(PINGREQ)


_HINT = 'address="mqtts://broker.example:8883", user="plant", password="env:BROKER_PASSWORD"'


def read_address(
    options: ConnectorOptions,
    address: Any,
    *,
    user: Any,
    password: Any,
    authority: Any,
    timeout: Any,
) -> Address:
    """Return where a broker is; what is wrong with it is kept."""
    found: str | Reference = ""
    if isinstance(address, str) and is_reference(address):
        kind, _, place = address.partition(":")
        found = Reference(kind, place)
    elif not isinstance(address, str) or not address.startswith(("mqtt://", "mqtts://")):
        options.wrong("address", "it is no address of MQTT", _HINT)
    elif open_secret(address) or not _is_whole(address):
        options.wrong("address", "it has a password inside, or is no host and port", _HINT)
    else:
        found = address
    for option, given in (("user", user), ("authority", authority)):
        if given is not None and not isinstance(given, str):
            options.wrong(option, f"{given!r} is not a text", _HINT)
    return Address(
        url=found,
        user=user if isinstance(user, str) else None,
        password=reference(options, "password", password),
        authority=authority if isinstance(authority, str) else None,
        timeout=options.positive_span("timeout", timeout, _TIMEOUT),
    )


def _is_whole(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port or 1
    except ValueError:
        return False
    return bool(parts.hostname) and port > 0 and not parts.username and not parts.path.strip("/")


class _explained:  # noqa: N801 - it is used as a verb
    """Turns errors of the network into ours: the broker is away, or a person must act."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ssl.SSLCertVerificationError | FileNotFoundError):
            raise ConfigurationError(
                f"MQTT: the certificate of the broker is not accepted: {error}",
                code="connector.refused",
                hint='authority="/etc/penstock/authority.pem" names who signed it',
            ) from error
        if isinstance(error, OSError):
            raise _away(str(error) or type(error).__name__) from error


def _away(text: str) -> TransientError:
    return TransientError(f"MQTT: {text}", code=AWAY)
