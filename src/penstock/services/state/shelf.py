"""The state of one task on a local disk: a RocksDB whose every entry is a changelog record.

It never holds more than was committed, and knows for each log that it is restored from an offset
below which nothing is missing. Reading the logs from there makes it whole, so it may lag, and it
may be lost: what is lost, broken, too old or not of this changelog is thrown away and rebuilt.

Whoever opens a directory holds a lock beside it for as long as it is open, and nothing is removed
by anybody else: two workers of one host must never take each other's state for broken.
"""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
)

from penstock.errors import TransientError
from penstock.machine.locks import FileLock
from penstock.services.state.entries import Entries
from penstock.services.usererrors import LOG

__all__ = ["LONGEST_AGE_SECONDS", "Shelf", "claimed", "open_copy", "open_shelf"]

LONGEST_AGE_SECONDS = 12 * 3600.0
"""A copy that was not brought up to date for so long is not used: the changelog may have forgotten
deletions by then, which Kafka keeps for a day unless told otherwise."""

_BLOCK_CACHE_BYTES = 32 << 20
_WRITE_BUFFER_BYTES = 16 << 20
_BITS_PER_KEY = 10
_KEPT_LOGS = 2
_OWN = b"\x00\x00"
_LABEL_KEY = _OWN + b"label"
_INDEX = _OWN + b"index\x00"
_FORMAT = "4"
_PATIENCE = timedelta(seconds=5)
"""How long the directory of a task is waited for: a worker that has just lost the task closes it,
and one that keeps a copy gives it up when it sees the claim."""
_CLAIM_SECONDS = 30.0
"""So long a claim counts: whoever made it may have been killed."""
Pairs = Iterable[tuple[bytes, bytes | None]]
Index = Iterable[tuple[Iterable[bytes], Iterable[bytes]]]
"""Entries of an index to write, and those to remove."""


class _Label(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy says about itself."""

    identity: str
    positions: dict[str, int]
    saved_at: float
    """When it was complete, up to the end of the changelog; or empty, and about to be filled."""
    indexed: int = 0
    """About how many entries of an index there are."""


class Shelf:
    """An open copy. ``positions`` are the offsets that its logs are to be read from, by topic.

    A log that has none is to be read from its start.

    ``private``: it is a copy for this run alone, because another process has the directory.

    Anything that goes wrong with the disk is a TransientError, and is kept in ``trouble``: a copy
    that failed once is thrown away when it is closed. Not for several threads at once, but for
    asking how long it is. ``lock`` has been taken, and is let go when it is closed.
    """

    def __init__(self, path: Path, *, identity: str, lock: FileLock, private: bool = False) -> None:
        self.path = path
        self.positions: dict[str, int] = {}
        self.trouble: TransientError | None = None
        self._identity = f"{_FORMAT}\n{identity}"
        self.private = private
        self._lock = lock
        self._closed = False
        self._complete_at = time.time()
        self._indexed = 0
        self._length = 0
        self._database = Rdict(str(path), _options(), access_type=AccessType.read_write())
        self._use(_label(self._database.get(_LABEL_KEY)))

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None where there is none."""
        try:
            found: bytes | None = self._database.get(key)
        except Exception as error:
            raise self._failed("reading", error) from error
        return found

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin so, in the order of their bytes."""
        try:
            entries = self._database.iter()
            entries.seek(prefix)
            while entries.valid() and (key := entries.key()).startswith(prefix):
                if not key.startswith(_OWN):
                    yield key, entries.value()
                entries.next()
            entries.status()
        except Exception as error:
            raise self._failed("reading", error) from error

    def entries(self) -> Entries:
        """Return all entries as they are now, however they change afterwards.

        Another thread may read them; they must be let go before the shelf is closed.
        """
        try:
            return Entries(self._database.iter())
        except Exception as error:
            raise self._failed("reading", error) from error

    def index(self, prefix: bytes, *, start: bytes = b"") -> Iterator[bytes]:
        """Yield the entries of an index that begin so, in the order of their bytes.

        ``start``: those of them that go on so, or stand behind that.
        """
        try:
            entries = self._database.iter()
            entries.seek(_INDEX + prefix + start)
            while entries.valid() and (key := entries.key()).startswith(_INDEX + prefix):
                yield key[len(_INDEX) :]
                entries.next()
            entries.status()
        except Exception as error:
            raise self._failed("reading", error) from error

    @property
    def stale(self) -> bool:
        """Whether it was complete so long ago that the changelog may have forgotten deletions."""
        return not 0 <= time.time() - self._complete_at < LONGEST_AGE_SECONDS

    def confirm(self, at: float | None = None) -> None:
        """Hear that it will be complete with the next position that is written."""
        self._complete_at = time.time() if at is None else at

    def write(
        self, pairs: Pairs, *, positions: Mapping[str, int] | None = None, index: Index = ()
    ) -> None:
        """Take in changelog records, all or none; with them, new positions of logs."""
        batch = WriteBatch(raw_mode=True)
        for added, gone in index:
            for entry in added:
                batch.put(_INDEX + entry, b"")
                self._indexed += 1
            for entry in gone:
                batch.delete(_INDEX + entry)
                self._indexed -= 1
        for key, value in pairs:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        reached = {**self.positions, **(positions or {})}
        if positions:
            label = _Label(
                identity=self._identity,
                positions=reached,
                saved_at=self._complete_at,
                indexed=max(0, self._indexed),
            )
            batch.put(_LABEL_KEY, msgspec.json.encode(label))
        try:
            self._database.write(batch)
        except Exception as error:
            raise self._failed("writing", error) from error
        self.positions = reached

    def clear(self) -> None:
        """Throw everything away and begin anew."""
        self._database.close()
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            self._database = Rdict(str(self.path), _options(), access_type=AccessType.read_write())
        except Exception as error:
            raise self._failed("making", error) from error
        self.positions = {}
        self._complete_at = time.time()
        self._indexed = 0

    def __len__(self) -> int:
        """Return about how many entries there are; any thread may ask, also when it is closed."""
        with suppress(Exception):  # closed a moment ago: what it had last is as good an answer
            if not self._closed:
                found = self._database.property_int_value("rocksdb.estimate-num-keys")
                self._length = max(0, int(found or 0) - max(0, self._indexed))
        return self._length

    def close(self) -> None:
        """Let go of the directory; remove it where it failed or was nobody's but ours."""
        self._closed = True
        with suppress(Exception):  # what it could not write is on the changelog
            self._database.close()
        if self.trouble is not None or self.private:
            shutil.rmtree(self.path, ignore_errors=True)
        if self.private:
            self._lock.path.unlink(missing_ok=True)
        self._lock.release()

    def _use(self, label: _Label | None) -> None:
        if label is None:
            reason = "" if len(self) == 0 else "it does not say what it is"
        elif label.identity != self._identity:
            reason = "it is of another changelog, or of states of other types"
        elif not 0 <= time.time() - label.saved_at < LONGEST_AGE_SECONDS:
            reason = "it is too old"
        else:
            self.positions = dict(label.positions)
            self._complete_at = label.saved_at
            self._indexed = label.indexed
            return
        if reason:
            LOG.warning("the state in %s is rebuilt: %s", self.path, reason)
            self.clear()

    def _failed(self, doing: str, error: Exception) -> TransientError:
        self.trouble = TransientError(
            f"{doing} the state in {self.path} failed",
            code="state.disk",
            detail=str(error),
            hint="see whether the disk is full or broken; the state is rebuilt when it works again",
        )
        return self.trouble


def open_shelf(path: Path, *, identity: str, patience: timedelta = _PATIENCE) -> Shelf:
    """Return the copy in a directory, empty where there was none that can be used.

    One that another has open is claimed and waited for. If it does not let go (a worker that
    sleeps) it is left to it: a directory of our own is used then. TransientError where the disk
    does not work.
    """
    with _disk_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        lock = _lock_of(path)
        claim = _claim_of(path)
        try:
            if not lock.acquire():
                claim.touch()
            if lock.held or lock.wait(timeout=patience):
                return _opened(path, identity=identity, lock=lock)
        finally:
            claim.unlink(missing_ok=True)
        return _private(path, identity=identity)


def open_copy(path: Path, *, identity: str) -> Shelf | None:
    """Return the copy in a directory as :func:`open_shelf` does; None where another has it."""
    with _disk_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock_of(path)
        if claimed(path) or not lock.acquire():
            return None
        shelf = _opened(path, identity=identity, lock=lock)
        if shelf.private:
            shelf.close()
            return None
        return shelf


def claimed(path: Path) -> bool:
    """Return whether somebody waits for a directory: whoever has a mere copy there gives it up."""
    try:
        return time.time() - _claim_of(path).stat().st_mtime < _CLAIM_SECONDS
    except OSError:
        return False


@contextmanager
def _disk_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unopened(path, error) from error


def _opened(path: Path, *, identity: str, lock: FileLock) -> Shelf:
    """Open a directory whose lock is ours; one that cannot be opened is made anew."""
    try:
        try:
            return Shelf(path, identity=identity, lock=lock)
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 - RocksDB raises nothing more exact
            if "/LOCK:" in str(error):  # somebody who does not know our lock
                lock.release()
                return _private(path, identity=identity)
            LOG.warning("the state in %s is rebuilt: %s", path, error)
            shutil.rmtree(path, ignore_errors=True)
        return Shelf(path, identity=identity, lock=lock)
    except BaseException as error:
        lock.release()
        if isinstance(error, TransientError) or not isinstance(error, Exception):
            raise
        raise _unopened(path, error) from error


def _private(path: Path, *, identity: str) -> Shelf:
    LOG.warning("the state in %s is in use; another copy is made", path)
    own = path.with_name(f"{path.name}.{uuid4().hex[:8]}")
    lock = _lock_of(own)
    lock.acquire()
    return Shelf(own, identity=identity, lock=lock, private=True)


def _unopened(path: Path, error: Exception) -> TransientError:
    in_the_way = path.exists() and not path.is_dir()
    why = "a file is where its directory should be" if in_the_way else str(error)
    return TransientError(
        f"the state in {path} cannot be opened: {why}",
        code="state.disk",
        detail=str(error) if in_the_way else "",
        hint=f"remove {path}: the state is rebuilt from its changelog",
    )


def _sweep(path: Path) -> None:
    """Remove copies beside this one that workers left behind when they were killed."""
    for other in path.parent.glob(f"{path.name}.*"):
        lock = _lock_of(other)
        if other.is_dir() and lock.acquire():
            shutil.rmtree(other, ignore_errors=True)
            lock.path.unlink(missing_ok=True)
            lock.release()


def _lock_of(path: Path) -> FileLock:
    return FileLock(path.with_name(f"{path.name}.lock"))


def _claim_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.claim")


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(_BLOCK_CACHE_BYTES))
    blocks.set_bloom_filter(_BITS_PER_KEY, block_based=False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - the binding takes it by position only
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_keep_log_file_num(_KEPT_LOGS)
    return options


def _label(found: bytes | None) -> _Label | None:
    if found is None:
        return None
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(found, type=_Label)
    return None
