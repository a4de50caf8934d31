"""Fetching jars into the cache: in parallel, verified, resumed after an interruption."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from penstock.core.backoff import Backoff
from penstock.errors import ConfigurationError
from penstock.machine.java.jars import Jar, JarSet, jars_dir, missing_jars
from penstock.machine.java.java import find_java
from penstock.machine.java.mirror import Mirror, configured_mirror
from penstock.machine.locks import FileLock

__all__ = ["FetchProgress", "ensure_jars", "fetch_jars"]

_CHUNK_BYTES = 256 << 10
_SOCKET_SECONDS = 20.0
_OTHER_FETCH_LIMIT = timedelta(minutes=15)
# An attempt that brought at least this much does not count against the limit of attempts.
_WORTHWHILE_BYTES = 64 << 10
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=10))
_ABANDONED = "jars.abandoned"
_END_SECONDS = 1.0
"""How long an interrupted fetch waits for its threads; one that waits for a server is left."""
_RUN_AGAIN = "then run: penstock jars fetch"
_HINTS = {
    "jars.disk": f"make room, or set PENSTOCK_CACHE to a directory on another disk, {_RUN_AGAIN}",
    "jars.unreachable": "check the network, or set PENSTOCK_MAVEN_MIRROR to a Maven repository "
    f"that can be reached, {_RUN_AGAIN}",
}


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """The progress of a download; ``waiting`` while another process of this user downloads."""

    bytes_done: int
    bytes_total: int
    jars_done: int
    jars_total: int
    waiting: bool = False


class _JarError(Exception):
    """A jar cannot be fetched; the text says why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class _NetworkError(Exception):
    """One attempt failed on the network; another may succeed."""


def fetch_jars(
    jars: Iterable[Jar],
    *,
    mirror: str | None = None,
    progress: Callable[[FetchProgress], None] = lambda _: None,
    parallel: int = 8,
    attempts: int = 5,
    backoff: Backoff = _BACKOFF,
) -> None:
    """Fetch jars into the cache; a jar that is there with the right bytes is not fetched again.

    A jar appears in the cache under its name only when all its bytes have been verified. Fetches
    of one cache take turns, so clones may fetch at once. An interrupted fetch goes on where it
    stopped. ``progress`` is called from several threads, one at a time.

    Raises ConfigurationError that names every jar that could not be fetched: ``jars.not-found``,
    ``jars.hash``, ``jars.unreachable`` or ``jars.disk``. Nothing is left of a jar whose bytes
    were wrong.
    """
    source = Mirror.parse(mirror) if mirror else configured_mirror()
    wanted = list({jar.repository_path: jar for jar in jars}.values())
    run = _Run(source, wanted, progress, attempts, backoff)
    try:
        lock = FileLock(jars_dir() / "fetch.lock")
        if not lock.acquire():
            run.tell(waiting=True)
            if not lock.wait(timeout=_OTHER_FETCH_LIMIT):
                raise ConfigurationError(
                    f"another download has been running for {_OTHER_FETCH_LIMIT}",
                    code="jars.busy",
                    detail=f"it holds {lock.path}",
                    hint="stop it, then run: penstock jars fetch",
                )
    except OSError as error:
        raise ConfigurationError(
            f"the cache {jars_dir()} cannot be written: {error.strerror}",
            code="jars.disk",
            hint="set PENSTOCK_CACHE to a directory of your own",
        ) from error
    with lock:
        failures = run.all(parallel)
    if failures:
        _refuse(failures, source)


def ensure_jars(*jar_sets: JarSet, fetch: Callable[[Sequence[Jar]], None] = fetch_jars) -> None:
    """Fetch the jars of these sets that are not in the cache.

    It looks for Java first, and raises ConfigurationError (``java.missing``) before it downloads
    anything. If no jar is missing it does not look for Java. Raises whatever ``fetch`` raises.
    """
    if missing := [jar for jar_set in jar_sets for jar in missing_jars(jar_set)]:
        find_java()
        fetch(missing)


def _refuse(failures: dict[Jar, _JarError], source: Mirror) -> None:
    reported = {jar: error for jar, error in failures.items() if error.code != _ABANDONED}
    lines = [f"{jar.coordinates}: {error}" for jar, error in sorted(reported.items())]
    if len(failures) > len(reported):
        lines.append(f"{len(failures) - len(reported)} more downloads were given up")
    first = next(iter(reported.values()))
    count = f"{len(failures)} jar{'' if len(failures) == 1 else 's'}"
    raise ConfigurationError(
        f"{count} could not be written to {jars_dir()}"
        if first.code == "jars.disk"
        else f"{count} could not be fetched from {source.url}",
        code=first.code,
        detail="\n  ".join(lines),
        hint=_HINTS.get(
            first.code, f"set PENSTOCK_MAVEN_MIRROR to another repository, {_RUN_AGAIN}"
        ),
    )


@dataclass
class _Run:
    """One fetch of a number of jars."""

    source: Mirror
    jars: list[Jar]
    progress: Callable[[FetchProgress], None]
    attempts: int
    backoff: Backoff
    stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bytes: dict[Jar, int] = field(default_factory=dict)
    _done: int = 0

    def all(self, parallel: int) -> dict[Jar, _JarError]:
        """Fetch all jars in threads; return those that failed."""
        # The largest first, so that no large one is left alone at the end.
        queue = deque(sorted(self.jars, key=lambda jar: -jar.size))
        failures: dict[Jar, _JarError] = {}
        broken: list[BaseException] = []

        def work() -> None:
            try:
                while queue and not broken:
                    self._try_next(queue, failures)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
                broken.append(error)
                self.stop.set()

        self.tell()
        # Daemons: a thread may wait for a silent server, and must not keep the process alive.
        threads = [
            threading.Thread(target=work, name=f"fetch-{number}", daemon=True)
            for number in range(min(parallel, len(self.jars)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            queue.clear()
            self.stop.set()
            ends_at = time.monotonic() + _END_SECONDS
            for thread in threads:
                if thread.is_alive():
                    thread.join(max(0.0, ends_at - time.monotonic()))
            raise
        if broken:
            raise broken[0]
        return failures

    def _try_next(self, queue: deque[Jar], failures: dict[Jar, _JarError]) -> None:
        try:
            jar = queue.popleft()
        except IndexError:  # another thread took the last one
            return
        try:
            self.one(jar)
        except _JarError as error:
            failures[jar] = error

    def tell(self, *, waiting: bool = False) -> None:
        with self._lock:
            self.progress(
                FetchProgress(
                    bytes_done=sum(self._bytes.values()),
                    bytes_total=sum(jar.size for jar in self.jars),
                    jars_done=self._done,
                    jars_total=len(self.jars),
                    waiting=waiting,
                )
            )

    def at(self, jar: Jar, count: int, *, done: bool = False) -> None:
        with self._lock:
            self._bytes[jar] = count
            self._done += done
        self.tell()

    def one(self, jar: Jar) -> None:
        """Bring one jar into the cache, or raise _JarError."""
        target = jar.cached
        try:
            if not jar.matches(target):
                part = target.with_name(target.name + ".part")
                part.parent.mkdir(parents=True, exist_ok=True)
                self._download(jar, part)
                part.replace(target)
        except OSError as error:
            # Of the disk: the other jars would fail on it too.
            self.stop.set()
            raise _JarError("jars.disk", error.strerror or str(error)) from error
        self.at(jar, jar.size, done=True)

    def _download(self, jar: Jar, part: Path) -> None:
        """Try until the part file has the jar's bytes, as long as that makes sense."""
        failed = 0
        while True:
            if self.stop.is_set():
                raise _JarError(_ABANDONED, "given up, because another jar failed")
            start = _size(part)
            try:
                if start < jar.size:
                    self._transfer(jar, part, start)
                why = f"the connection ended after {_size(part)} of {jar.size} bytes"
            except _NetworkError as error:
                why = str(error)
            if _size(part) >= jar.size:
                if jar.matches(part):
                    return
                part.unlink()
                if start == 0:
                    raise _JarError("jars.hash", "its bytes do not match the checksum (SHA-512)")
                why = "the earlier part did not belong to this jar"
            failed = 0 if _size(part) - start >= _WORTHWHILE_BYTES else failed + 1
            if failed >= self.attempts:
                self.stop.set()
                raise _JarError("jars.unreachable", f"{why} ({failed} attempts)")
            self.stop.wait(self.backoff.delay(max(failed, 1)).total_seconds())

    def _transfer(self, jar: Jar, part: Path, start: int) -> None:
        """Make one request, and append what it brings to the part file."""
        request = Request(self.source.address(jar.repository_path))  # noqa: S310 - see Mirror
        request.add_header("User-Agent", "penstock")
        if start:
            request.add_header("Range", f"bytes={start}-")
        if self.source.authorization:
            request.add_unredirected_header("Authorization", self.source.authorization)
        try:
            response = urlopen(request, timeout=_SOCKET_SECONDS)  # noqa: S310 - see Mirror
        except (OSError, HTTPException) as error:
            _raise_if_final(error, part)
            raise _NetworkError(_reason(error)) from error
        with response:
            # A server, or a file: address, that knows no ranges sends it all again.
            resumed = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            with part.open("ab" if start and resumed else "wb") as file:
                self._copy(response, file, jar)
                file.flush()
                os.fsync(file.fileno())

    def _copy(self, response: IO[bytes], file: IO[bytes], jar: Jar) -> None:
        count = file.tell()
        # One byte past the size is enough to know that it is another file.
        while count <= jar.size and not self.stop.is_set():
            try:
                chunk = response.read(min(_CHUNK_BYTES, jar.size + 1 - count))
            except (OSError, HTTPException) as error:
                raise _NetworkError(_reason(error)) from error
            if not chunk:
                return
            file.write(chunk)
            count += len(chunk)
            self.at(jar, min(count, jar.size))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _raise_if_final(error: Exception, part: Path) -> None:
    """Raise _JarError for an answer that will not change by asking again."""
    if isinstance(error, HTTPError):
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)
            elif error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                part.unlink(missing_ok=True)
                raise _JarError("jars.not-found", "the repository does not have it") from error
            elif error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise _JarError("jars.refused", f"HTTP {error.code}") from error
    elif isinstance(error, URLError) and isinstance(error.reason, FileNotFoundError):
        raise _JarError("jars.not-found", "the repository does not have it") from error


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
