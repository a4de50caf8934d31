from datetime import timedelta
from pathlib import Path

import pytest

from penstock.backbone.client.connection import Connection
from penstock.core.settings.settings import KafkaSettings, Secret
from penstock.errors import ConfigurationError


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, str]:
    for name, label in (("ca", "CERTIFICATE"), ("cert", "CERTIFICATE"), ("key", "PRIVATE KEY")):
        (tmp_path / name).write_text(f"-----BEGIN {label}-----\n{name}\n-----END {label}-----\n")
    return {
        "tls_ca_file": str(tmp_path / "ca"),
        "tls_certificate_file": str(tmp_path / "cert"),
        "tls_key_file": str(tmp_path / "key"),
    }


def test_plain_settings_give_the_address_and_the_timeout_only() -> None:
    connection = Connection("127.0.0.1:9092", KafkaSettings(request_timeout=timedelta(seconds=5)))
    assert connection.client_config() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "penstock",
        "security.protocol": "PLAINTEXT",
        "socket.timeout.ms": 5000,
        "reconnect.backoff.max.ms": 2000,
        "metadata.recovery.strategy": "rebootstrap",
    }
    assert connection.java_config()["request.timeout.ms"] == "5000"
    assert connection.java_config()["default.api.timeout.ms"] == "10000"
    assert not [name for name in connection.java_config() if name.startswith(("ssl", "sasl"))]


def test_a_login_is_told_to_both_clients_in_their_words() -> None:
    settings = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="me",
        sasl_password=Secret('pass"word\\'),
    )
    connection = Connection("kafka.test:9094", settings)
    native = connection.client_config()
    assert native["sasl.mechanism"] == "SCRAM-SHA-512"
    assert native["sasl.password"] == 'pass"word\\'
    assert type(native["sasl.password"]) is str
    assert connection.java_config()["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="me" password="pass\\"word\\\\";'
    )
    assert 'pass"' not in repr(connection)


def test_tls_files_are_told_to_both_clients(tls: dict[str, str]) -> None:
    settings = KafkaSettings(security_protocol="SSL", tls_key_password=Secret("open"), **tls)
    connection = Connection("kafka.test:9093", settings)
    native, java = connection.client_config(), connection.java_config()
    assert native["ssl.ca.location"] == tls["tls_ca_file"]
    assert native["ssl.key.password"] == "open"
    assert java["ssl.truststore.location"] == tls["tls_ca_file"]
    assert "BEGIN PRIVATE KEY" in java["ssl.keystore.key"]
    assert "BEGIN CERTIFICATE" in java["ssl.keystore.certificate.chain"]
    assert java["ssl.key.password"] == "open"


def test_a_key_that_java_cannot_read_is_refused_with_the_command_that_mends_it(
    tls: dict[str, str],
) -> None:
    Path(tls["tls_key_file"]).write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    connection = Connection("kafka.test:9093", KafkaSettings(security_protocol="SSL", **tls))
    with pytest.raises(ConfigurationError, match="openssl pkcs8 -topk8"):
        connection.java_config()


def test_all_that_is_wrong_is_said_at_once(tls: dict[str, str]) -> None:
    settings = KafkaSettings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GUESS",
        tls_ca_file=tls["tls_ca_file"],
        tls_key_file="/nowhere/key.pem",
    )
    with pytest.raises(ConfigurationError) as caught:
        Connection("kafka.test:9092", settings)
    assert caught.value.code == "kafka.security"
    assert caught.value.detail.splitlines() == [
        "sasl_mechanism is 'GUESS'; it must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        "  SASL_PLAINTEXT needs sasl_username and sasl_password",
        "  TLS files are set, but security_protocol is SASL_PLAINTEXT",
        "  set tls_certificate_file and tls_key_file together",
        "  tls_key_file: the file /nowhere/key.pem does not exist",
    ]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (KafkaSettings(security_protocol="TLS"), "'TLS'; it must be one of PLAINTEXT, SSL"),
        (KafkaSettings(sasl_username="me"), "sasl_username is set, but security_protocol is"),
    ],
)
def test_a_contradiction_is_refused(settings: KafkaSettings, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Connection("kafka.test:9092", settings)


def test_a_key_store_is_named_in_the_place_of_the_keys_text(tls: dict[str, str]) -> None:
    settings = KafkaSettings(security_protocol="SSL", tls_key_password=Secret("open"), **tls)
    java = Connection("kafka.test:9093", settings).java_config(key_store=Path("/private/key.pem"))
    assert java["ssl.keystore.location"] == "/private/key.pem"
    assert not [text for text in java.values() if "BEGIN" in text or text == "open"]


def test_an_encrypted_key_without_its_password_is_refused_at_once(tls: dict[str, str]) -> None:
    Path(tls["tls_key_file"]).write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    with pytest.raises(ConfigurationError) as caught:
        Connection("kafka.test:9093", KafkaSettings(security_protocol="SSL", **tls))
    assert "is encrypted, and tls_key_password is not set" in caught.value.detail
