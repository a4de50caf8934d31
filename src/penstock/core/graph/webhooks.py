"""To which URLs answers may be sent."""

import re
from collections.abc import Iterable

__all__ = ["MOST_CHARACTERS", "is_webhook", "webhook_mistake"]

MOST_CHARACTERS = 1000
_MOST_PORT = 65_535
# Nothing of what a URL may have besides: no names and passwords, no fragment.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9\-._~/:@!$&'()*+,;=%]*)(?:\?[A-Za-z0-9\-._~/:@!$&'()*+,;=%?]*)?"
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def webhook_mistake(url: str) -> str:
    """Return why answers cannot be sent to a URL; empty: they can.

    It names a host over TLS, or this machine, and has nothing that servers read in several ways.
    """
    found = _URL.fullmatch(url)
    if found is None or len(url) > MOST_CHARACTERS:
        return "it must be https://HOST/PATH"
    if found["scheme"] == "http" and found["host"] not in _LOOPBACK:
        return "it must begin with https://"
    if found["port"] and int(found["port"]) > _MOST_PORT:
        return "there is no such port"
    path = found["path"].lower()
    dots = any(part in {".", ".."} for part in path.replace("%2e", ".").split("/"))
    around = dots or "%2f" in path or "%5c" in path or "//" in path
    return "its path leads around" if around else ""


def is_webhook(url: str, allowed: Iterable[str]) -> bool:
    """Return whether answers may be sent to a URL: it begins as one that the application allows.

    >>> is_webhook("https://hooks.example/answers/7", ["https://hooks.example/answers/"])
    True
    >>> is_webhook("https://hooks.example.evil/answers/7", ["https://hooks.example/answers/"])
    False
    """
    return not webhook_mistake(url) and any(url.startswith(prefix) for prefix in allowed)
