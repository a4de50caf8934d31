"""How a client reaches the cluster, as settings of both client libraries."""

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from penstock.core.settings.settings import KafkaSettings
from penstock.errors import ConfigurationError

__all__ = ["Connection", "is_encrypted"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# A broker that comes back is found again this soon; the library's own limit is ten seconds.
_RECONNECT_LIMIT_MS = 2000


@dataclass(frozen=True, slots=True)
class Connection:
    """An address and the settings to reach it with; making one opens nothing.

    Raises ConfigurationError (``kafka.security``) that names every setting that is wrong.
    """

    bootstrap: str
    settings: KafkaSettings
    client_id: str = "penstock"
    """What the cluster, and whoever asks it for the members of a group, calls these clients."""

    def __post_init__(self) -> None:
        if problems := _problems(self.settings):
            raise ConfigurationError(
                "the security settings of Kafka are wrong",
                code="kafka.security",
                detail="\n  ".join(problems),
                hint="run: penstock config explain kafka.security_protocol",
            )

    def within(self, limit: timedelta) -> Self:
        """Return the connection with this time-out for its calls."""
        return replace(self, settings=replace(self.settings, request_timeout=limit))

    def named(self, client_id: str) -> Self:
        """Return the connection whose clients have this name."""
        return replace(self, client_id=client_id)

    def client_config(self) -> dict[str, Any]:
        """Return the configuration of a librdkafka client; it holds the secrets in clear."""
        settings = self.settings
        config = {
            "bootstrap.servers": self.bootstrap,
            "client.id": self.client_id,
            "security.protocol": settings.security_protocol,
            "socket.timeout.ms": round(settings.request_timeout.total_seconds() * 1000),
            "reconnect.backoff.max.ms": _RECONNECT_LIMIT_MS,
            # A broker that was away longer than its session names no broker at all for a moment:
            # the client then drops the one it has, and must start over from its first address.
            "metadata.recovery.strategy": "rebootstrap",
        }
        optional = {
            "sasl.mechanism": settings.sasl_mechanism,
            "sasl.username": settings.sasl_username,
            "sasl.password": settings.sasl_password.reveal(),
            "ssl.ca.location": settings.tls_ca_file,
            "ssl.certificate.location": settings.tls_certificate_file,
            "ssl.key.location": settings.tls_key_file,
            "ssl.key.password": settings.tls_key_password.reveal(),
        }
        return config | {name: value for name, value in optional.items() if value}

    def java_config(self, *, key_store: Path | None = None) -> dict[str, str]:
        """Return the configuration of a Java client; it holds the secrets in clear.

        TLS files are PEM, as for librdkafka. Java reads a key only as PKCS#8. ``key_store`` is a
        file with key and certificates, named in the place of their text.
        """
        settings = self.settings
        request_ms = round(settings.request_timeout.total_seconds() * 1000)
        config = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "penstock",
            "security.protocol": settings.security_protocol,
            "request.timeout.ms": str(request_ms),
            # A call may need a second request; so it is in Java's own defaults, too.
            "default.api.timeout.ms": str(2 * request_ms),
            "reconnect.backoff.max.ms": str(_RECONNECT_LIMIT_MS),
        }
        if "SASL" in settings.security_protocol:
            config["sasl.mechanism"] = settings.sasl_mechanism
            config["sasl.jaas.config"] = (
                f"{_LOGIN_MODULES[settings.sasl_mechanism]} required"
                f" username={_quoted(settings.sasl_username)}"
                f" password={_quoted(settings.sasl_password.reveal())};"
            )
        if settings.tls_ca_file:
            config["ssl.truststore.type"] = "PEM"
            config["ssl.truststore.location"] = settings.tls_ca_file
        if settings.tls_key_file:
            config |= _java_key(settings, key_store)
        return config

    def java_key(self) -> str:
        """Return the client's key as the file has it; ConfigurationError: Java does not read it."""
        return _java_key_text(self.settings)

    def certificates(self) -> str:
        """Return the client's certificates as their file has them."""
        return _read(self.settings.tls_certificate_file)


def is_encrypted(key: str) -> bool:
    """Return whether a key in PEM can be read only with its password."""
    return "BEGIN ENCRYPTED PRIVATE KEY" in key or "Proc-Type: 4,ENCRYPTED" in key


def _java_key(settings: KafkaSettings, key_store: Path | None) -> dict[str, str]:
    if key_store is not None:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key_store)}
    config = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _read(settings.tls_certificate_file),
        "ssl.keystore.key": _java_key_text(settings),
    }
    if password := settings.tls_key_password.reveal():
        config["ssl.key.password"] = password
    return config


def _java_key_text(settings: KafkaSettings) -> str:
    key = _read(settings.tls_key_file)
    if "BEGIN PRIVATE KEY" not in key and "BEGIN ENCRYPTED PRIVATE KEY" not in key:
        raise ConfigurationError(
            f"{settings.tls_key_file} is not a key that Java can read",
            code="kafka.security",
            detail="it must be PKCS#8 in PEM format: '-----BEGIN PRIVATE KEY-----' or ENCRYPTED",
            hint=f"run: openssl pkcs8 -topk8 -in {settings.tls_key_file} -out key.pem",
        )
    return key


def _problems(settings: KafkaSettings) -> list[str]:
    protocol = settings.security_protocol
    if protocol not in _PROTOCOLS:
        return [f"security_protocol is {protocol!r}; it must be one of {', '.join(_PROTOCOLS)}"]
    problems = []
    if "SASL" in protocol:
        if settings.sasl_mechanism not in _LOGIN_MODULES:
            known = ", ".join(_LOGIN_MODULES)
            problems.append(
                f"sasl_mechanism is {settings.sasl_mechanism!r}; it must be one of {known}"
            )
        if not settings.sasl_username or not settings.sasl_password.reveal():
            problems.append(f"{protocol} needs sasl_username and sasl_password")
    elif settings.sasl_username:
        problems.append(f"sasl_username is set, but security_protocol is {protocol}")
    files = {
        "tls_ca_file": settings.tls_ca_file,
        "tls_certificate_file": settings.tls_certificate_file,
        "tls_key_file": settings.tls_key_file,
    }
    if "SSL" not in protocol and any(files.values()):
        problems.append(f"TLS files are set, but security_protocol is {protocol}")
    if bool(settings.tls_certificate_file) != bool(settings.tls_key_file):
        problems.append("set tls_certificate_file and tls_key_file together")
    if not settings.tls_key_password and _is_encrypted_file(settings.tls_key_file):
        problems.append("the key in tls_key_file is encrypted, and tls_key_password is not set")
    problems += [
        f"{name}: the file {file} does not exist"
        for name, file in files.items()
        if file and not Path(file).is_file()
    ]
    return problems


def _is_encrypted_file(file: str) -> bool:
    try:
        return bool(file) and is_encrypted(_read(file))
    except (OSError, UnicodeDecodeError):
        return False  # told as a file that is not there, or by the client that reads it


def _read(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
