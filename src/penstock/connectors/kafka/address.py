"""Another Kafka cluster: where it is, and how to log in."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, is_reference, reference
from penstock.core.settings.settings import KafkaSettings, Secret
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["Address", "Mechanism", "read_address"]

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_HINT = 'bootstrap="kafka-1.example:9093,kafka-2.example:9093", tls=True'


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a cluster is, and how to log in."""

    bootstrap: str | Reference
    user: str | None
    password: Reference | None
    mechanism: str
    tls: bool
    authority: str | None
    timeout: timedelta

    def connection(self) -> "Connection":
        """Return how a client reaches the cluster; nothing is opened."""
        from penstock.backbone.client.connection import Connection

        given = self.bootstrap
        bootstrap = given.read() if isinstance(given, Reference) else given
        if not _is_bootstrap(bootstrap):
            text = "the bootstrap servers are no host:port,..."
            raise ConfigurationError(text, code="connector.refused", hint=_HINT)
        login = self.user is not None
        wire = "SSL" if self.tls else "PLAINTEXT"
        settings = KafkaSettings(
            bootstrap=bootstrap,
            security_protocol=f"SASL_{wire}" if login else wire,
            sasl_mechanism=self.mechanism if login else "",
            sasl_username=self.user or "",
            sasl_password=Secret(self.password.read() if self.password else ""),
            tls_ca_file=self.authority or "",
            request_timeout=self.timeout,
        )
        return Connection(bootstrap, settings).named("penstock-source")


def read_address(
    options: ConnectorOptions,
    bootstrap: Any,
    *,
    user: Any,
    password: Any,
    mechanism: Any,
    tls: Any,
    authority: Any,
    timeout: Any,
) -> Address:
    """Return where a cluster is; what is wrong with it is kept."""
    found: str | Reference = "unknown:1"
    if isinstance(bootstrap, str) and is_reference(bootstrap):
        kind, _, place = bootstrap.partition(":")
        found = Reference(kind, place)
    elif isinstance(bootstrap, str) and _is_bootstrap(bootstrap):
        found = bootstrap
    else:
        options.wrong("bootstrap", "it is no host:port,...", _HINT)
    for option, given in (("user", user), ("authority", authority)):
        if given is not None and (not isinstance(given, str) or not given):
            options.wrong(option, f"{given!r} is not a text", f'{option}="..."')
    if (user is None) != (password is None):
        options.wrong("password", "user and password go together", 'password="env:NAME"')
    return Address(
        bootstrap=found,
        user=user if isinstance(user, str) else None,
        password=reference(options, "password", password),
        mechanism=options.word(
            "mechanism", mechanism, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), "SCRAM-SHA-512"
        ),
        tls=options.flag("tls", tls),
        authority=authority if isinstance(authority, str) else None,
        timeout=options.positive_span("timeout", timeout, timedelta(seconds=10)),
    )


def _is_bootstrap(text: str) -> bool:
    pairs = [each.rpartition(":") for each in text.split(",")]
    return text.isascii() and all(
        host and not set(host) & set(" @/=\"'") and port.isdigit() and 0 < int(port[:6]) < 65_536  # noqa: PLR2004 - ports
        for host, _, port in pairs
    )
