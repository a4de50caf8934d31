"""Messages of syslog as a source, and its options."""

import ssl
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.connectors.connector import Feed
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.syslog.datagrams import DatagramServer
from penstock.connectors.syslog.frames import FrameCutter, Reader
from penstock.connectors.tcp import TcpServer
from penstock.errors import ConfigurationError, Problem

__all__ = ["Syslog", "syslog"]

_LARGEST = 64 << 10
_LAST_PORT = 65_535
_CONNECTIONS = 256

Transport = Literal["udp", "tcp", "tls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Syslog:
    """A socket that messages come to; :func:`syslog` makes it."""

    transport: Transport
    host: str
    port: int
    max_message: int
    zone: str
    certificate: str | None
    key: str | None
    clients: str | None
    max_connections: int
    line_timeout: timedelta
    idle_timeout: timedelta
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: bool = field(default=False, init=False)

    def describe(self) -> str:
        """Return where it listens, for people."""
        shown = self.port or "of its choice"
        return f"syslog over {self.transport.upper()}, {self.host} port {shown}"

    def cutter(self, sender: str) -> FrameCutter:
        """Return what cuts the bytes of one sender into messages."""
        return FrameCutter(self._reader(), sender=sender)

    def run(self, feed: Feed) -> None:
        """Listen until the feed stops."""
        with closing(self._server(feed)) as server:
            while not feed.stop.is_set():
                server.turn()

    def _server(self, feed: Feed) -> DatagramServer | TcpServer:
        if self.transport == "udp":
            return DatagramServer(self._reader(), feed, host=self.host, port=self.port)
        return TcpServer(self, feed, tls=self._context() if self.transport == "tls" else None)

    def _reader(self) -> Reader:
        zone: tzinfo = UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        return Reader(largest=self.max_message, zone=zone, now=lambda: datetime.now(UTC))

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate or "", self.key, password=_no_passphrase)
            if self.clients is not None:
                context.load_verify_locations(self.clients)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the certificate, its key or that of the clients cannot be used: {error}",
                code="source.certificate",
                hint=f"openssl x509 -noout -text -in {self.certificate}",
            ) from error
        return context


def syslog(
    *,
    transport: Transport = "tcp",
    host: str = "127.0.0.1",
    port: int = 0,
    max_message: str | int = _LARGEST,
    zone: str = "UTC",
    certificate: str | None = None,
    key: str | None = None,
    clients: str | None = None,
    max_connections: int = _CONNECTIONS,
    message_timeout: str | timedelta = "30s",
    idle_timeout: str | timedelta = "1d",
) -> Syslog:
    """Listen for messages of syslog (RFC 5424 and RFC 3164) over UDP, TCP or TLS.

    ``parse`` gets a dict; without it the record has the fields of these names that it declares:
    facility, severity, level, at, host, app, process, kind, data, text, received_at, sender. What
    is no message becomes a dead letter. A message is written once, or lost if the process is killed
    before Kafka acknowledged it; over UDP also if it is not read in time.

    Args:
        transport: ``"udp"``, ``"tcp"`` (messages by counted octets or by lines) or ``"tls"``.
        host: The address to listen on.
        port: The port; 0 takes a free one, which the status of the source shows.
        max_message: How long a message may be; of a longer one the first bytes are kept.
        zone: The time zone of times without one (RFC 3164): ``"Europe/Oslo"``.
        certificate: With TLS: the file of the server's certificate, in PEM.
        key: With TLS: the file of its private key; None: it is in the same file.
        clients: With TLS: the file of the authorities whose certificates senders must have.
        max_connections: How many senders at a time; see ``tcp_lines``.
        message_timeout: How long the end of a message may take; then its connection is closed.
        idle_timeout: How long a connection may send nothing; then it is closed.

    Examples:
        >>> logs = syslog(transport="udp", port=5514)
        >>> app.source("logs", logs, into=readings).summary
        'source, syslog over UDP, 127.0.0.1 port 5514'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("syslog", problems)
    chosen: Transport = options.word("transport", transport, ("udp", "tcp", "tls"), "tcp")
    if chosen == "tls" and not certificate:
        options.wrong("certificate", "TLS needs one", 'certificate="/etc/penstock/syslog.pem"')
    return Syslog(
        transport=chosen,
        host=options.text("host", host, "127.0.0.1", 'name it, or its address: "127.0.0.1"'),
        port=options.whole("port", port, 0, least=0, most=_LAST_PORT),
        max_message=options.size("max_message", max_message, _LARGEST),
        zone=_zone(options, zone),
        certificate=_file(options, "certificate", certificate, chosen),
        key=_file(options, "key", key, chosen),
        clients=_file(options, "clients", clients, chosen),
        max_connections=options.whole("max_connections", max_connections, _CONNECTIONS, least=1),
        line_timeout=options.positive_span(
            "message_timeout", message_timeout, timedelta(seconds=30)
        ),
        idle_timeout=options.positive_span("idle_timeout", idle_timeout, timedelta(days=1)),
        problems=tuple(problems),
    )


def _zone(options: ConnectorOptions, given: Any) -> str:
    try:
        return "UTC" if given == "UTC" else ZoneInfo(given).key
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        options.wrong("zone", f"{given!r} is no time zone", 'zone="Europe/Oslo"')
        return "UTC"


def _file(options: ConnectorOptions, option: str, given: Any, transport: str) -> str | None:
    if given is None or (isinstance(given, str) and given and transport == "tls"):
        return given
    why = "it is for TLS" if isinstance(given, str) else f"{given!r} is no file"
    options.wrong(option, why, f'transport="tls", {option}="/etc/penstock/{option}.pem"')
    return None


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type its passphrase")
