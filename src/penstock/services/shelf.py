"""The state of one share on a local disk: a RocksDB whose every entry is a changelog record.

It never holds more than was committed, and knows an offset of the changelog below which nothing is
missing. Reading the changelog from there makes it whole, so it may lag, and it may be lost: what is
lost, broken, too old or not of this changelog is thrown away and rebuilt.
"""

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
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
from penstock.services.blame import LOG

__all__ = ["LONGEST_AGE_SECONDS", "Shelf", "open_shelf"]

LONGEST_AGE_SECONDS = 12 * 3600.0
"""A copy that was not brought up to date for so long is not used: the changelog may have forgotten
deletions by then, which Kafka keeps for a day unless told otherwise."""

_BLOCK_CACHE_BYTES = 32 << 20
_WRITE_BUFFER_BYTES = 16 << 20
_BITS_PER_KEY = 10
_KEPT_LOGS = 2
_OWN = b"\x00\x00"
_LABEL_KEY = _OWN + b"label"
Pairs = Iterable[tuple[bytes, bytes | None]]


class _Label(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy says about itself."""

    identity: str
    position: int
    saved_at: float


class Shelf:
    """An open copy. ``position`` is where the changelog is to be read from; None: from its start.

    ``private``: it is a copy for this run alone, because another process has the directory.

    Anything that goes wrong with the disk is a TransientError, and is kept in ``trouble``: a copy
    that failed once is thrown away when it is closed. Not for several threads at once.
    """

    def __init__(self, path: Path, *, identity: str, private: bool = False) -> None:
        self.path = path
        self.position: int | None = None
        self.trouble: TransientError | None = None
        self._identity = identity
        self.private = private
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

    def write(self, pairs: Pairs, *, position: int | None = None) -> None:
        """Take in changelog records, all or none; with them, a new position."""
        batch = WriteBatch(raw_mode=True)
        for key, value in pairs:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if position is not None:
            label = _Label(identity=self._identity, position=position, saved_at=time.time())
            batch.put(_LABEL_KEY, msgspec.json.encode(label))
        try:
            self._database.write(batch)
        except Exception as error:
            raise self._failed("writing", error) from error
        if position is not None:
            self.position = position

    def clear(self) -> None:
        """Throw everything away and begin anew."""
        self._database.close()
        shutil.rmtree(self.path, ignore_errors=True)
        try:
            self._database = Rdict(str(self.path), _options(), access_type=AccessType.read_write())
        except Exception as error:
            raise self._failed("making", error) from error
        self.position = None

    def __len__(self) -> int:
        """Return about how many entries there are."""
        return int(self._database.property_int_value("rocksdb.estimate-num-keys") or 0)

    def close(self) -> None:
        """Let go of the directory; remove it where it failed or was nobody's but ours."""
        with suppress(Exception):  # what it could not write is on the changelog
            self._database.close()
        if self.trouble is not None or self.private:
            shutil.rmtree(self.path, ignore_errors=True)

    def _use(self, label: _Label | None) -> None:
        if label is None:
            reason = "" if len(self) == 0 else "it does not say what it is"
        elif label.identity != self._identity:
            reason = "it is of another changelog, or of states of other types"
        elif not 0 <= time.time() - label.saved_at < LONGEST_AGE_SECONDS:
            reason = "it is too old"
        else:
            self.position = label.position
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


def open_shelf(path: Path, *, identity: str) -> Shelf:
    """Return the copy in a directory, empty where there was none that can be used.

    One that another process has open (a worker that sleeps) is left to it: a directory of our own
    is used then. TransientError where the disk does not work.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        return Shelf(path, identity=identity)
    except Exception as error:
        if isinstance(error, TransientError):
            raise
        if "/LOCK:" in str(error):
            LOG.warning("the state in %s is in use; another copy is made", path)
            own = path.with_name(f"{path.name}.{uuid4().hex[:8]}")
            return Shelf(own, identity=identity, private=True)
        LOG.warning("the state in %s is rebuilt: %s", path, error)
    shutil.rmtree(path, ignore_errors=True)
    try:
        return Shelf(path, identity=identity)
    except Exception as error:
        in_the_way = path.exists() and not path.is_dir()
        why = "a file is where its directory should be" if in_the_way else str(error)
        raise TransientError(
            f"the state in {path} cannot be opened: {why}",
            code="state.disk",
            detail=str(error) if in_the_way else "",
            hint=f"remove {path}: the state is rebuilt from its changelog",
        ) from error


def _sweep(path: Path) -> None:
    """Remove copies beside this one that workers left behind when they were killed."""
    for other in path.parent.glob(f"{path.name}.*"):
        if time.time() - other.stat().st_mtime > LONGEST_AGE_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


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
