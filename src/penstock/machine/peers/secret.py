"""What the processes of a project know of each other: a setting, or a file that the first makes."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from penstock.core.settings.settings import ServingSettings
from penstock.errors import ConfigurationError

__all__ = ["SECRET_FILE", "shared_secret"]

SECRET_FILE = "serving.secret"  # noqa: S105 - the name of a file
_BYTES = 32
_SHORTEST = 16


def shared_secret(settings: ServingSettings, home: Path) -> bytes:
    """Return the secret; the file is made, for its owner alone, where there is none.

    ConfigurationError ``serving.secret``: it is too short, or the file cannot be read or made.
    """
    if given := settings.secret.reveal():
        if len(given) < _SHORTEST:
            raise ConfigurationError(
                f"serving.secret has fewer than {_SHORTEST} characters",
                code="serving.secret",
                hint="openssl rand -hex 32",
            )
        return given.encode()
    file = home / SECRET_FILE
    try:
        with suppress(FileExistsError):
            _make(file)
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be used", code="serving.secret", detail=str(error)
        ) from error


def _make(file: Path) -> None:
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    # Written whole before it has its name: whoever finds it can read all of it.
    own = file.with_name(f".{SECRET_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as opened:  # noqa: PTH123 - a descriptor, not a path
            opened.write(secrets.token_hex(_BYTES).encode())
        os.link(own, file)
    finally:
        own.unlink()
