"""A source of syslog listens over UDP, TCP and TLS, with real sockets."""

import logging
import socket
import ssl
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from logging.handlers import SysLogHandler

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock import App, record
from penstock.connectors import syslog
from penstock.connectors.source.intake import Intake
from penstock.connectors.syslog.datagrams import DatagramServer
from penstock.connectors.syslog.frames import Reader
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError


@record()
class Line:
    host: str | None
    severity: str
    at: datetime | None
    text: str
    data: dict[str, dict[str, str]]
    sender: str
    process: int | None


@contextmanager
def listening(feed, **options):
    made = syslog(**options)
    running = threading.Thread(target=made.run, args=[feed])
    running.start()
    try:
        until(lambda: "listening on" in feed.facts)
        host, port = feed.facts["listening on"].split(" ")[0].rsplit(":", 1)
        yield host, int(port)
    finally:
        feed.stop.set()
        running.join(60)
    assert not running.is_alive()


def until(condition):
    pause = threading.Event()
    for _ in range(3_000):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it did not come about in time")


def test_datagrams_become_records_and_what_is_none_says_why(feed):
    with listening(feed, transport="udp", max_message="100B") as place:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
            for data in (b"<11>Nov 19 12:00:00 h app[7]: one\n", b"junk", b"", b"<1>" + b"x" * 200):
                sender.sendto(data, place)
        until(lambda: len(feed.lines) == 3)
    app = App("logs")
    intake = Intake(app.source("in", syslog(), into=app.stream("lines", Line)))
    taken = intake.take(feed.lines[0]).value
    assert b'"host":"h","severity":"error"' in taken
    assert b'"text":"one","data":{},"sender":"127.0.0.1","process":7}' in taken
    assert [line.fault().code for line in feed.lines[1:]] == [
        "data.not-syslog",
        "data.message-too-long",
    ]
    assert feed.settled == 3


def test_datagrams_that_nobody_had_time_for_are_counted_and_told(feed):
    reader = Reader(largest=1_000, zone=UTC, now=lambda: datetime.now(UTC))
    with closing(DatagramServer(reader, feed, host="127.0.0.1", port=0)) as server:
        host, port = feed.facts["listening on"].split(" ")[0].rsplit(":", 1)
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
            for _ in range(20_000):
                sender.sendto(b"<1>" + b"x" * 900, (host, int(port)))
            while "dropped" not in feed.facts:
                sender.sendto(b"<1>last", (host, int(port)))
                server.turn()
    assert int(feed.facts["dropped"]) > 1_000
    assert "dropped because they were not read in time" in feed.trouble


def test_what_python_itself_sends_is_understood(feed):
    with listening(feed, transport="udp") as place:
        handler = SysLogHandler(place, facility=SysLogHandler.LOG_LOCAL0)
        handler.emit(logging.LogRecord("x", logging.WARNING, "f", 1, "half %s", ("full",), None))
        handler.close()
        until(lambda: feed.lines)
    assert feed.lines[0].content["text"] == "half full"
    assert (feed.lines[0].content["facility"], feed.lines[0].content["level"]) == (16, 4)


def test_a_connection_has_messages_of_both_kinds(feed):
    with listening(feed, transport="tcp") as place:
        with socket.create_connection(place) as sender:
            sender.sendall(b"16 <1>1 - h - - - -<2>two\n9 <3>a")
        until(lambda: len(feed.lines) == 3)
    assert [line.content["level"] for line in feed.lines[:2]] == [1, 2]
    assert feed.lines[2].fault().code == "data.half-message"


@pytest.fixture(scope="module")
def pems(tmp_path_factory):
    """A certificate that signs itself, and its key."""
    home = tmp_path_factory.mktemp("pems")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (home / "own.pem").write_bytes(made.public_bytes(pem))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (home / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return home


def test_over_tls_senders_without_a_certificate_are_turned_away_and_others_heard(feed, pems):
    own, key = str(pems / "own.pem"), str(pems / "key.pem")
    options = {"transport": "tls", "certificate": own, "key": key, "clients": own}
    known = ssl.create_default_context(cafile=own)
    with listening(feed, **options) as place:
        with socket.create_connection(place) as plain:
            assert is_closed_after(plain, b"<1>in the open\n")
        with (
            socket.create_connection(place) as wire,
            known.wrap_socket(wire, server_hostname="localhost") as nobody,
        ):
            assert is_closed_after(nobody, b"<1>unknown\n")
        known.load_cert_chain(own, key)
        with (
            socket.create_connection(place) as wire,
            known.wrap_socket(wire, server_hostname="localhost") as sender,
        ):
            sender.sendall(b"".join(b"<1>number %d\n" % n for n in range(5_000)))
            until(lambda: len(good(feed)) == 5_000)
    assert [line.content["text"] for line in good(feed)] == [f"number {n}" for n in range(5_000)]
    broken = syslog(**options | {"key": own})
    with pytest.raises(ConfigurationError, match="cannot be used"):
        broken.run(feed)


def is_closed_after(sender, data):
    sender.settimeout(60)
    try:
        sender.sendall(data)
        while sender.recv(100):  # an alert of TLS, perhaps
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def good(feed):
    return [line for line in list(feed.lines) if line.fault() is None]


@pytest.mark.parametrize(
    "options",
    [
        {"transport": "sctp"},
        {"transport": "tls"},
        {"certificate": "x.pem"},
        {"zone": "Mars/Olympus"},
        {"zone": "../../etc/passwd"},
        {"port": 70_000},
        {"max_message": "0B"},
        {"message_timeout": "0s"},
        {"host": 7},
    ],
)
def test_each_wrong_option_is_a_problem_of_the_application(options):
    app = App("logs")
    app.source("in", syslog(**options), into=app.stream("lines", Line))
    assert [problem.code for problem in check(app.graph)] == ["source.option"]


def test_an_address_that_is_taken_is_told(feed):
    with listening(feed, transport="udp") as (_, port), pytest.raises(ConfigurationError) as raised:
        syslog(transport="udp", port=port).run(feed)
    assert f"cannot listen on 127.0.0.1:{port}" in raised.value.message
