"""The archive of classes with which Spark's JVM starts sooner."""

from collections.abc import Sequence
from pathlib import Path

import pyspark

from penstock.machine.java.classarchive import archive_options
from penstock.machine.java.jars import JarSet, jar_paths
from penstock.machine.java.java import find_java

__all__ = ["archive_words", "quoted"]


def archive_words(*, writes: bool = False) -> list[str]:
    """Return the JVM's options to use the archive, if there is one, or those to write it.

    A JVM that writes it takes some fifteen seconds longer to end, so no session of a user does.
    """
    jars = [*jar_paths(JarSet.SPARK), *sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))]
    return archive_options("spark", find_java(), jars, writes=writes)


def quoted(words: Sequence[str]) -> str:
    """Return options of a JVM as the one text in which Spark takes them."""
    return " ".join(f'"{word}"' for word in words)
