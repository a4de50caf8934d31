"""One request and its answer over HTTP, each bounded, over a connection that is kept."""

import http.client
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from penstock.connectors.connector import AWAY
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, is_reference, open_secret, reference
from penstock.core.printable import printable
from penstock.core.settings.masking import names_secret
from penstock.errors import ConfigurationError, TransientError

__all__ = ["Answer", "Endpoint", "Exchange", "read_endpoint"]

_SHOWN = 300
_LATER = (408, 425, 429)
"""Answers that say: try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A URL, and what goes with every request to it."""

    url: str | Reference
    headers: Mapping[str, str | Reference] = field(default_factory=dict)
    timeout: timedelta = timedelta(seconds=10)
    largest: int = 16 << 20
    """The longest body of an answer that is read."""

    @property
    def shown(self) -> str:
        """Return the host, for people; the rest may be a secret."""
        return "a reference" if isinstance(self.url, Reference) else urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> str:
        """Return status and the beginning of the body, for people."""
        text = printable(self.body[:_SHOWN].decode(errors="replace")).strip()
        return f"HTTP {self.status}{': ' if text else ''}{text}"


class Exchange:
    """A connection to one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        url = endpoint.url.read() if isinstance(endpoint.url, Reference) else endpoint.url
        if not _whole(url):
            raise ConfigurationError(
                "the URL is none of http or https",
                code="connector.refused",
                hint="https://HOST/...",
            )
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        seconds = endpoint.timeout.total_seconds()
        self._wire: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            self._wire = http.client.HTTPSConnection(
                host, parts.port, timeout=seconds, context=context
            )
        else:
            self._wire = http.client.HTTPConnection(host, parts.port, timeout=seconds)

    def ask(
        self,
        method: str,
        *,
        below: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer; TransientError where there is none, or it says: later.

        ``below`` is a path below that of the endpoint, whose query is left out then.
        """
        path = f"{self._path.partition('?')[0].rstrip('/')}/{below}" if below else self._path
        own = {
            name: value.read() if isinstance(value, Reference) else value
            for name, value in self._endpoint.headers.items()
        }
        try:
            self._wire.request(method, path, body, {**own, **(headers or {})})
            response = self._wire.getresponse()
            data = response.read(self._endpoint.largest + 1)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            words = str(error) or type(error).__name__
            raise TransientError(f"{self._endpoint.shown}: {words}", code=AWAY) from error
        except ValueError as error:
            self.close()
            raise ConfigurationError(
                f"{self._endpoint.shown}: {type(error).__name__}: a header cannot be sent",
                code="connector.refused",
            ) from error
        if len(data) > self._endpoint.largest:
            self.close()
            raise ConfigurationError(
                f"{self._endpoint.shown} answers more than {self._endpoint.largest} bytes",
                code="source.too-large",
                hint="largest=...",
            )
        answer = Answer(response.status, dict(response.headers), data)
        if answer.status in _LATER or answer.status >= http.client.INTERNAL_SERVER_ERROR:
            raise TransientError(f"{self._endpoint.shown}: {answer.words}", code=AWAY)
        return answer

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        with suppress(OSError):
            self._wire.close()


def read_endpoint(
    options: ConnectorOptions, url: Any, headers: Any, timeout: Any, largest: Any = "16MiB"
) -> Endpoint:
    """Return where requests go; what is wrong with it is kept."""
    found: str | Reference = ""
    if isinstance(url, str) and is_reference(url):
        kind, _, place = url.partition(":")
        found = Reference(kind, place)
    elif not isinstance(url, str) or not _whole(url):
        options.wrong("url", "it is no URL of http or https", 'url="https://example.org/hook"')
    elif open_secret(url) or not url.isascii() or any(each <= " " for each in url):
        options.wrong("url", "it has a secret or a space inside", 'url="env:HOOK_URL"')
    else:
        found = url
    return Endpoint(
        url=found,
        headers=_headers(options, headers),
        timeout=options.positive_span("timeout", timeout, timedelta(seconds=10)),
        largest=options.size("largest", largest, 16 << 20),
    )


def _whole(url: str) -> bool:
    """Return whether this is a URL of http or https with a host, and maybe a port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _headers(options: ConnectorOptions, given: Any) -> dict[str, str | Reference]:
    hint = 'headers={"Authorization": "env:HOOK_TOKEN"}'
    if given is None:
        return {}
    if not isinstance(given, dict):
        options.wrong("headers", f"{type(given).__name__} is no dict", hint)
        return {}
    found: dict[str, str | Reference] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            options.wrong("headers", "names and values are texts", hint)
        elif is_reference(value) or names_secret(name):
            if (place := reference(options, f"headers[{name!r}]", value)) is not None:
                found[name] = place
        elif not name.isascii() or any(each < " " or each == ":" for each in name):
            options.wrong("headers", f"{name!r} is no name of a header", hint)
        else:
            found[name] = value
    return found
