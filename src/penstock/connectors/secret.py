"""Secrets of connectors by reference: the application names where one is, and never has it."""

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.connectors.options import ConnectorOptions
from penstock.core.settings.masking import without_secrets
from penstock.errors import ConfigurationError

__all__ = ["Reference", "is_reference", "open_secret", "reference"]

_LARGEST = 64 << 10
_HINT = '"env:SHOP_PASSWORD" or "file:/run/secrets/shop", for example'


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret is: an environment variable, or a file."""

    kind: str
    place: str

    def __str__(self) -> str:
        """Return the reference, never the secret."""
        return f"{self.kind}:{self.place}"

    def read(self) -> str:
        """Return the secret, without the end of its line; ConfigurationError: there is none."""
        try:
            if self.kind == "env":
                return os.environ[self.place]
            with Path(self.place).open(encoding="utf-8") as file:
                return file.read(_LARGEST).rstrip("\r\n")
        except (KeyError, OSError, UnicodeDecodeError) as error:
            why = "it is not set" if self.kind == "env" else str(error)
            raise ConfigurationError(
                f"the secret {self} cannot be read: {why}",
                code="secret.missing",
                hint=f"export {self.place}=..." if self.kind == "env" else f"ls -l {self.place}",
            ) from error


def is_reference(given: str) -> bool:
    """Return whether a text says where something is, rather than what it is."""
    return given.startswith(("env:", "file:")) and len(given.partition(":")[2]) > 0


def reference(options: ConnectorOptions, option: str, given: object) -> Reference | None:
    """Return where a secret is; a secret itself is refused, and not shown."""
    if given is None:
        return None
    if isinstance(given, str) and is_reference(given):
        kind, _, place = given.partition(":")
        return Reference(kind, place)
    options.wrong(option, "a secret is given by reference, and this is none", _HINT)
    return None


def open_secret(text: str) -> bool:
    """Return whether a text has a secret inside: ``postgresql://user:word@host``."""
    return without_secrets(text) != text
