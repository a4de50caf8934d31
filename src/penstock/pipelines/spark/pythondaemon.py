"""The process from which Spark forks its Python workers, with their libraries already imported.

Spark runs Python functions in workers, one for each task at a time, and forks them from a daemon.
PySpark's own daemon forks first, and every worker imports pandas, Arrow and the rest for itself,
which takes a second of processor time. This one imports first: a worker is there at once, and all
of them share the memory.
"""

import gc
import importlib

from pyspark.daemon import manager

__all__ = ["MODULES", "main", "preload"]

MODULES = (
    "pyspark.worker",
    "pyarrow.compute",
    "pandas",
    "penstock.pipelines.rollups.processor",
    "penstock.pipelines.rollups.combining",
    "penstock.pipelines.sink.kafkatask",
    "penstock.pipelines.sink.rangetask",
)
"""What workers of a pipeline import. None of them starts a thread, which a fork would lose."""


def preload() -> None:
    """Import what workers need, and take it out of the garbage collector's rounds."""
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def main() -> None:
    """Be the daemon until Spark closes its standard input."""
    preload()
    manager()


if __name__ == "__main__":
    main()
