"""How many bytes the topics of an embedded broker take on the disk of this machine."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["sizes_on_disk"]


def sizes_on_disk(directory: Path) -> Mapping[str, Mapping[int, int]]:
    """Return the bytes of records of each partition, all copies together; empty: none are here.

    Kafka's client cannot ask a broker for them, so this is for brokers of this machine alone.
    """
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for data in directory.glob("node-*/data"):
        for folder in _listed(data):
            topic, _, number = folder.name.rpartition("-")
            if topic and number.isdecimal() and folder.is_dir(follow_symlinks=False):
                partitions = found[topic]
                partitions[int(number)] = partitions.get(int(number), 0) + _size(folder.path)
    return found


def _size(folder: str) -> int:
    total = 0
    for file in _listed(folder):
        if file.name.endswith(".log"):
            try:
                total += file.stat(follow_symlinks=False).st_size
            except OSError:
                continue  # retention has just deleted it
    return total


def _listed(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # the topic has just been deleted
