"""Where a gateway listens: checked before anything is opened."""

import socket
from pathlib import Path

from penstock.core.asking.where import is_loopback
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServingSettings
from penstock.errors import ConfigurationError
from penstock.machine.ports import free_ports

__all__ = ["address_of", "listen", "require_safe"]

_ATTEMPTS = 5
_BACKLOG = 512


def require_safe(settings: ServingSettings) -> None:
    """Raise ConfigurationError where strangers could use the gateway, or TLS is half set up."""
    if not (settings.tokens_file or settings.jwks_file) and not is_loopback(settings.host):
        raise ConfigurationError(
            f"the gateway would take requests from anybody who reaches {settings.host}",
            code="serving.open",
            hint="set serving.tokens_file or serving.jwks_file, or listen on 127.0.0.1",
        )
    if bool(settings.tls_certificate_file) != bool(settings.tls_key_file):
        raise ConfigurationError(
            "TLS needs a certificate and its key",
            code="serving.tls",
            hint="set serving.tls_certificate_file and serving.tls_key_file together",
        )
    for file in filter(None, (settings.tls_certificate_file, settings.tls_key_file)):
        if not Path(file).is_file():
            raise ConfigurationError(
                f"the file {file} does not exist",
                code="serving.tls",
                hint="penstock config explain serving.tls_certificate_file",
            )


def listen(graph: Graph, gateway: Gateway, settings: ServingSettings) -> socket.socket:
    """Return a socket that listens where the gateway is to; ConfigurationError ``serving.port``."""
    if settings.port:
        number = [part.name for part in graph.parts if part.kind == gateway.kind].index(
            gateway.name
        )
        return _bound(settings.host, settings.port + number)
    # Between finding a port and listening on it another process may take it.
    for port in free_ports(_ATTEMPTS):
        try:
            return _bound(settings.host, port)
        except ConfigurationError:
            continue
    return _bound(settings.host, free_ports(1)[0])


def address_of(listening: socket.socket, settings: ServingSettings) -> str:
    """Return where callers find the gateway."""
    scheme = "https" if settings.tls_certificate_file else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.settimeout(0)
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen on {host}:{port}",
            code="serving.port",
            detail=str(error),
            hint="choose another port, or any free one: --set serving.port=0",
        ) from error
    return listening
