"""Settings for a Spark master outside this process, and what is refused before it starts."""

import os
import sys
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.core.graph.data import Lake
from penstock.core.graph.parts import Pipeline
from penstock.core.settings.settings import Settings
from penstock.errors import ConfigurationError
from penstock.machine.ports import LOOPBACK

__all__ = [
    "CLUSTER_SHUFFLES",
    "cluster_options",
    "is_local",
    "on_one_machine",
    "python_path",
    "refuse_unshared",
]

CLUSTER_SHUFFLES = 16
"""Partitions of shuffles and state where nothing says how large the cluster is."""


def is_local(master: str) -> bool:
    """Whether driver and executors are one process."""
    return master.startswith("local")


def on_one_machine(master: str) -> bool:
    """Whether all of Spark runs on this machine."""
    return is_local(master) or _on_loopback(master)


def cluster_options(master: str, jars: Sequence[str]) -> dict[str, str]:
    """Return what executors in other processes need.

    The jars go to them over the network. Python does not: the interpreter, Penstock and the
    application's modules are at the same paths on every machine.
    """
    options = {
        "spark.jars": ",".join(jars),
        "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.executorEnv.PYTHONPATH": python_path(),
    }
    if _on_loopback(master):
        options["spark.driver.host"] = options["spark.driver.bindAddress"] = LOOPBACK
    return options


def python_path() -> str:
    """Return where executors' Python workers find what this process can import."""
    return os.pathsep.join(filter(os.path.isabs, sys.path))


def refuse_unshared(settings: Settings, pipelines: Iterable[Pipeline]) -> None:
    """Refuse a cluster of several machines whose checkpoints or lake would be on one of them.

    ConfigurationError (``spark.not-shared``): executors write state below the checkpoint, and
    rows of a lake table below its path.
    """
    master = settings.spark.master
    if on_one_machine(master):
        return
    uses_lake = any(
        isinstance(data, Lake) or data.archive
        for each in pipelines
        for data in (*each.reads, each.writes)
    )
    missing = [
        key
        for key, wanted in {
            "spark.checkpoint_dir": not settings.spark.checkpoint_dir,
            "lake.path": uses_lake and not settings.lake.path,
        }.items()
        if wanted
    ]
    if missing:
        raise ConfigurationError(
            f"{master} runs on other machines, which cannot see the directory of this project",
            code="spark.not-shared",
            detail=f"not set: {', '.join(missing)}",
            hint=f"set {' and '.join(missing)} to a path or address that every machine sees",
        )


def _on_loopback(master: str) -> bool:
    host = urlsplit(master).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        return False
