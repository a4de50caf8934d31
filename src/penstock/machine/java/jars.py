"""The jars that Penstock needs: a committed list with sizes and SHA-512, and their places.

``jars.lock`` holds one jar a line, ``set group:artifact:version size sha512``;
``scripts/lock_jars.py`` writes it. Nothing here touches the network.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.machine.java.verified import Verified
from penstock.machine.places import cache_dir

__all__ = ["Jar", "JarSet", "jar_paths", "jars_dir", "locked_jars", "missing_jars", "parse_lock"]

_NAMED_IN_MESSAGES = 8
_VERIFIED = "verified.json"


class JarSet(StrEnum):
    """Which program a jar is for; each has its own versions of what both need."""

    KAFKA = "kafka"
    SPARK = "spark"


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """One jar of the list: its Maven coordinates, and the bytes it must have."""

    jar_set: JarSet
    group: str
    artifact: str
    version: str
    size: int
    sha512: str

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """``artifact-version.jar``."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        """The path of the jar below the root of any Maven repository, and of the cache."""
        group = self.group.replace(".", "/")
        return f"{group}/{self.artifact}/{self.version}/{self.file_name}"

    @property
    def cached(self) -> Path:
        """Where the jar lies in the cache, if it is there."""
        return jars_dir() / self.repository_path

    def matches(self, path: Path) -> bool:
        """Whether a file has exactly the bytes of this jar; reads it all."""
        try:
            if path.stat().st_size != self.size:
                return False
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha512").hexdigest() == self.sha512
        except FileNotFoundError:
            return False


def jars_dir() -> Path:
    """Return the directory of the cache that holds the jars, laid out as a Maven repository."""
    return cache_dir() / "jars"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Return the jars that the text of a lock file lists, in its order."""
    jars = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            jar_set, coordinates, size, sha512 = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(JarSet(jar_set), group, artifact, version, int(size), sha512))
    return tuple(jars)


@cache
def _lock() -> tuple[Jar, ...]:
    return parse_lock(files("penstock.machine.java").joinpath("jars.lock").read_text("utf-8"))


def locked_jars(jar_set: JarSet | None = None) -> tuple[Jar, ...]:
    """Return the jars of one set, or of all."""
    return tuple(jar for jar in _lock() if jar_set in (None, jar.jar_set))


def missing_jars(jar_set: JarSet | None = None, *, verify: bool = False) -> list[Jar]:
    """Return the jars that are not in the cache, or not with the right size.

    With ``verify`` their bytes are read and compared too, which takes a second.
    """
    return [jar for jar in locked_jars(jar_set) if not _present(jar, verify=verify)]


def _present(jar: Jar, *, verify: bool) -> bool:
    if verify:
        return jar.matches(jar.cached)
    try:
        return jar.cached.stat().st_size == jar.size
    except FileNotFoundError:
        return False


def jar_paths(jar_set: JarSet) -> list[Path]:
    """Return the files of a set, in the order of the list; their bytes are as they must be.

    They are read in full the first time and after a change. Raises ConfigurationError that names
    the jars that are not there (``jars.missing``) or have other bytes (``jars.wrong``).
    """
    if missing := missing_jars(jar_set):
        raise ConfigurationError(
            f"{len(missing)} of {len(locked_jars(jar_set))} {jar_set} jars are not in the cache",
            code="jars.missing",
            detail=f"in {jars_dir()}: {_named(missing)}",
            hint="run: penstock jars fetch",
        )
    verified = Verified(jars_dir() / _VERIFIED)
    wrong = [
        jar
        for jar in locked_jars(jar_set)
        if not verified.holds(jar.cached, jar.sha512, matches=jar.matches)
    ]
    verified.save()
    if wrong:
        raise ConfigurationError(
            f"{len(wrong)} {jar_set} jars do not match their checksum",
            code="jars.wrong",
            detail=f"in {jars_dir()}: {_named(wrong)}",
            hint="run: penstock jars fetch",
        )
    return [jar.cached for jar in locked_jars(jar_set)]


def _named(jars: list[Jar]) -> str:
    names = [jar.file_name for jar in jars[:_NAMED_IN_MESSAGES]]
    more = len(jars) - len(names)
    return ", ".join([*names, f"and {more} more"] if more else names)
