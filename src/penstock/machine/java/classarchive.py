"""Archives of the classes that JVMs load, with which they start in about half the time.

Java calls it class-data sharing. A JVM that ends by itself writes an archive; the next one with the
same Java and the same jars maps it, instead of reading, checking and linking thousands of classes
again. A JVM that an archive does not fit starts without it, and says nothing.
"""

import hashlib
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from penstock.machine.java.java import Java
from penstock.machine.places import cache_dir

__all__ = ["ARCHIVES_KEPT", "CLAIM_LASTS", "archive_options", "archives_dir"]

ARCHIVES_KEPT = 4
"""So many archives of a program stay in the cache, the newest; each environment has its own."""

CLAIM_LASTS = timedelta(minutes=10)
"""So long no other JVM is told to write an archive; whoever was told may have been killed."""

_HEADER_BYTES = 4
_QUIET = "-Xlog:cds*=off"
"""Without it the JVM prints which classes it leaves out, and why an archive does not fit."""


def archives_dir() -> Path:
    """Return the directory of the cache that holds the archives."""
    return cache_dir() / "java" / "classes"


def archive_options(
    program: str, java: Java, jars: Iterable[Path], *, writes: bool = True
) -> list[str]:
    """Return the options with which a JVM uses the archive of a program, or writes it at its end.

    ``jars`` are all jars of its class path, in their order. Where the archive is missing, one JVM
    at a time is told to write it, and the others start without. Where the cache cannot be written,
    all do: an archive saves time, and nothing depends on it. ``writes`` is false for a JVM that
    loads too little to write it.
    """
    name = f"{program}-{_fingerprint(java, jars)}"
    archive = archives_dir() / f"{name}.jsa"
    try:
        _publish(archive)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}", _QUIET]
        if not writes:
            return []
        archives_dir().mkdir(parents=True, exist_ok=True)
        if not _claim(archive.with_suffix(".claim")):
            return []
        _make_room(program)
    except OSError:
        return []
    # Under a name of its own: no JVM ever maps a file that another one is still writing.
    return [f"-XX:ArchiveClassesAtExit={archives_dir() / name}.{uuid4().hex}.new", _QUIET]


def _fingerprint(java: Java, jars: Iterable[Path]) -> str:
    """Return a name for what must be the same for an archive to fit."""
    release = java.home / "release"
    facts = [str(java.home), release.read_text("utf-8") if release.exists() else ""]
    for jar in jars:
        found = jar.stat()
        facts.append(f"{jar} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _publish(archive: Path) -> None:
    """Make what a JVM has written, and written to its end, the archive."""
    for written in archive.parent.glob(f"{archive.stem}.*.new"):
        if _is_whole(written):
            written.replace(archive)


def _is_whole(archive: Path) -> bool:
    """Whether an archive was written to its end: the JVM writes its first bytes last."""
    with archive.open("rb") as file:
        return any(file.read(_HEADER_BYTES))


def _claim(claim: Path) -> bool:
    """Whether nobody else was told to write the archive; nobody else is for some minutes, then."""
    try:
        if time.time() - claim.stat().st_mtime < CLAIM_LASTS.total_seconds():
            return False
        claim.unlink()
    except FileNotFoundError:
        pass
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _make_room(program: str) -> None:
    """Remove all but the newest archives of a program, what was never finished, and old claims."""
    now = time.time()
    files = [(each.stat().st_mtime, each) for each in archives_dir().glob(f"{program}-*")]
    archives = sorted(each for each in files if each[1].suffix == ".jsa")
    useless = archives[: max(0, len(archives) + 1 - ARCHIVES_KEPT)]
    for at, file in files:
        if file.suffix != ".jsa" and now - at > CLAIM_LASTS.total_seconds():
            useless.append((at, file))
    for _, file in useless:
        file.unlink(missing_ok=True)
