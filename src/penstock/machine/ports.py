"""Free TCP ports on the loopback address."""

import random
import socket
from contextlib import suppress
from pathlib import Path

from penstock.errors import ConfigurationError

__all__ = ["LOOPBACK", "free_ports", "keep_port", "kept_port", "port_answers", "port_is_free"]

LOOPBACK = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections (32768 and up on
# Linux). Inside it, a client that keeps trying to reach a dead server on its own machine can be
# given the server's port for its own end, connect to itself, and so keep the port from the
# server for good.
_FIRST, _LAST = 20_000, 32_000
_ATTEMPTS = 500
_CONNECT_SECONDS = 1.0
_PORT_CHARACTERS = 5


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the JVM does: a port whose last connections are still winding down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def port_answers(port: int) -> bool:
    """Whether something accepts connections on this port of the loopback address now."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Return this many different ports that are free now; they are not reserved.

    They are taken at random, so that two processes asking at once rarely get the same.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, _LAST), _ATTEMPTS):
        if len(found) == count:
            return found
        if port_is_free(port):
            found.append(port)
    raise ConfigurationError(
        f"no {count} free ports on {LOOPBACK}",
        code="ports.none-free",
        detail=f"{_ATTEMPTS} ports between {_FIRST} and {_LAST} were tried",
        hint="stop processes that listen on many ports",
    )


def kept_port(file: Path) -> int:
    """Return the port that a file has kept, if it is one of those that are given here; else 0."""
    try:
        text = file.read_text(encoding="ascii")[: _PORT_CHARACTERS + 1].strip()
    except (OSError, ValueError):
        return 0
    port = int(text) if text.isdecimal() and len(text) <= _PORT_CHARACTERS else 0
    return port if _FIRST <= port < _LAST else 0


def keep_port(file: Path, port: int) -> None:
    """Keep a port for next time; where that cannot be written, next time has another one."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{port}\n", encoding="ascii")
