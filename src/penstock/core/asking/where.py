"""Where a worker answers for its state: in the name of its Kafka clients, which its group tells."""

import ipaddress

__all__ = ["address_in", "client_name", "is_loopback"]

_NAME = "penstock@"


def client_name(host: str, port: int) -> str:
    """Return the name of the clients of a process that answers at an address."""
    return f"{_NAME}[{host}]:{port}" if ":" in host else f"{_NAME}{host}:{port}"


def address_in(client: str) -> str | None:
    """Return the address that a client's name says; None: it says none."""
    host, colon, port = client.removeprefix(_NAME).rpartition(":")
    named = client.startswith(_NAME) and host and colon and port.isdecimal()
    return f"{host}:{port}" if named else None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
