"""The Maven repository that jars come from."""

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit, urlunsplit
from xml.etree import ElementTree as ET

from penstock.errors import ConfigurationError

__all__ = ["MIRROR_VARIABLE", "Mirror", "configured_mirror"]

MIRROR_VARIABLE = "PENSTOCK_MAVEN_MIRROR"
_SCHEMES = ("https", "http", "file")


@dataclass(frozen=True, slots=True)
class Mirror:
    """The root of a Maven repository, and the credentials its address carried, apart."""

    url: str
    credentials: str = field(default="", repr=False)

    @classmethod
    def parse(cls, address: str) -> Self:
        """Return the mirror an address names: ``https:``, ``http:`` or ``file:``.

        A name and password in it (``https://name:password@host/``) are sent, never shown.
        """
        parts = urlsplit(address.strip())
        userinfo, _, host = parts.netloc.rpartition("@")
        if parts.scheme not in _SCHEMES or (parts.scheme != "file" and not host):
            raise ConfigurationError(
                f"{urlunsplit(parts._replace(netloc=host))!r} is not a Maven repository's address",
                code="jars.mirror",
                hint=f"set {MIRROR_VARIABLE} to an https:, http: or file: address",
            )
        url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        return cls(url, unquote(userinfo))

    @property
    def authorization(self) -> str | None:
        """The value of the header that proves who asks, if there is one."""
        if not self.credentials:
            return None
        return "Basic " + base64.b64encode(self.credentials.encode()).decode()

    def address(self, repository_path: str) -> str:
        """Return the address of one file of the repository."""
        return f"{self.url}/{repository_path}"


def configured_mirror() -> Mirror:
    """Return the repository to use.

    ``$PENSTOCK_MAVEN_MIRROR``, else the mirror of Maven Central that the user's Maven settings
    name, else Maven Central.
    """
    if address := os.environ.get(MIRROR_VARIABLE):
        return Mirror.parse(address)
    if address := _mirror_in_settings(Path("~/.m2/settings.xml").expanduser()):
        return Mirror.parse(address)
    from jgo.constants import MAVEN_CENTRAL_URL

    return Mirror.parse(MAVEN_CENTRAL_URL)


def _mirror_in_settings(settings: Path) -> str:
    try:
        root = ET.fromstring(settings.read_bytes())  # noqa: S314 - the user's own file
    except (OSError, ET.ParseError):
        return ""
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        of = {name.strip() for name in mirror.findtext("{*}mirrorOf", "").split(",")}
        url = mirror.findtext("{*}url", "").strip()
        # Maven's placeholders (${env.X}) are Maven's to fill in.
        if of & {"central", "*", "external:*"} and "!central" not in of and "${" not in url:
            return url
    return ""
