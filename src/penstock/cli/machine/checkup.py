"""The single checks of ``penstock doctor``: each looks at one thing and changes nothing."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import psutil

from penstock.core.settings.settings import EMBEDDED, KafkaSettings
from penstock.errors import ConfigurationError, PenstockError
from penstock.machine.configfile import Loaded
from penstock.machine.java.jars import JarSet, jar_paths, jars_dir, locked_jars, missing_jars
from penstock.machine.java.java import find_java
from penstock.machine.packages import INSTALL_SPARK, missing_spark_packages
from penstock.machine.places import cache_dir
from penstock.machine.ports import free_ports, port_answers

__all__ = ["Finding", "check_up"]

_GIB = 1 << 30
_MEMORY_WANTED = 2 * _GIB
_DISK_WANTED = 2 * _GIB
_DISK_NEEDED = _GIB // 4
_PYTHON_NEEDED = (3, 11)
_ANSWER_LIMIT = timedelta(seconds=5)
_PACKAGES = ("penstock", "confluent-kafka", "msgspec")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and the command that fixes it."""

    check: str
    state: Literal["ok", "warn", "missing"]
    text: str
    mend: str = ""


def check_up(load: Callable[[], Loaded]) -> Iterator[Finding]:
    """Yield the findings as they come; ``load`` reads the configuration."""
    yield _python()
    yield _packages()
    yield _java()
    yield _jars(JarSet.KAFKA)
    yield from _spark()
    yield _cache()
    try:
        loaded = load()
    except PenstockError as error:
        where = "penstock config show"
        yield Finding("configuration", "missing", f"{error.message}: {error.detail}", where)
        return
    yield _configuration(loaded)
    yield _memory()
    yield _disk("disk, project", loaded.places.home)
    yield _disk("disk, cache", cache_dir())
    yield _ports()
    yield _broker(loaded)


def _python() -> Finding:
    text = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < _PYTHON_NEEDED:
        return Finding("Python", "missing", text, "install Python 3.11 or newer")
    return Finding("Python", "ok", text)


def _packages() -> Finding:
    found, gone = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            gone.append(name)
    if gone:
        return Finding("packages", "missing", f"without {', '.join(gone)}", "pip install penstock")
    return Finding("packages", "ok", ", ".join(found))


def _java() -> Finding:
    try:
        java = find_java()
    except ConfigurationError as error:
        return Finding("Java", "missing", f"{error.message}: {error.detail}", error.hint)
    return Finding("Java", "ok", f"{java.version} by {java.origin}, {java.home}")


def _spark() -> Iterator[Finding]:
    if missing := missing_spark_packages():
        text = f"without {', '.join(missing)}: services run, pipelines do not"
        yield Finding("Spark", "warn", text, INSTALL_SPARK)
        return
    yield Finding("Spark", "ok", f"pyspark {version('pyspark')}")
    yield _jars(JarSet.SPARK)


def _jars(jar_set: JarSet) -> Finding:
    check, total, missing = f"jars, {jar_set}", len(locked_jars(jar_set)), missing_jars(jar_set)
    if missing:
        text = f"{len(missing)} of {total} are not in {jars_dir()}; what needs them fetches them"
        return Finding(check, "warn", text, "penstock jars fetch")
    try:
        jar_paths(jar_set)
    except ConfigurationError as error:
        text = f"{error.message}: {error.detail}"
        return Finding(check, "missing", text, "penstock jars fetch")
    return Finding(check, "ok", f"all {total} in {jars_dir()}, every byte verified")


def _cache() -> Finding:
    directory = _existing(cache_dir())
    if os.access(directory, os.W_OK):
        return Finding("cache", "ok", str(cache_dir()))
    mend = "set PENSTOCK_CACHE to a directory of your own"
    return Finding("cache", "missing", f"{cache_dir()} cannot be written", mend)


def _configuration(loaded: Loaded) -> Finding:
    profile = f", profile {loaded.profile}" if loaded.profile else ""
    if loaded.file is None:
        return Finding("configuration", "ok", f"no penstock.toml, defaults only{profile}")
    return Finding("configuration", "ok", f"{loaded.file}{profile}")


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    text = f"{free / _GIB:.1f} GiB free, {os.cpu_count()} cores"
    if free < _MEMORY_WANTED:
        mend = "close other programs, or lower spark.driver_memory and kafka.heap_mb"
        return Finding("memory", "warn", f"{text}; Spark and the broker need 2", mend)
    return Finding("memory", "ok", text)


def _disk(check: str, directory: Path) -> Finding:
    free = shutil.disk_usage(_existing(directory)).free
    text = f"{free / _GIB:.1f} GiB free at {directory}"
    if free < _DISK_NEEDED:
        return Finding(check, "missing", text, "make room on the disk")
    if free < _DISK_WANTED:
        return Finding(check, "warn", text, "make room on the disk")
    return Finding(check, "ok", text)


def _existing(directory: Path) -> Path:
    return next(path for path in (directory, *directory.parents) if path.exists())


def _ports() -> Finding:
    try:
        free_ports(2)
    except ConfigurationError as error:
        return Finding("ports", "missing", f"{error.message}: {error.detail}", error.hint)
    return Finding("ports", "ok", "the broker uses free ports on 127.0.0.1")


def _broker(loaded: Loaded) -> Finding:
    kafka = loaded.settings.kafka
    if kafka.bootstrap != EMBEDDED:
        return _answer(kafka, kafka.bootstrap, "kafka")
    from penstock.backbone.broker.plan import ClusterPlan

    try:
        text = (loaded.places.broker / "broker.json").read_text(encoding="utf-8")
        plan = ClusterPlan.from_json(text)
    except (OSError, ValueError):
        return Finding("broker", "ok", "embedded; starts when needed")
    if not any(port_answers(port) for port in plan.ports):
        return Finding("broker", "ok", "embedded; not running; starts when needed")
    return _answer(kafka, plan.bootstrap, "broker")


def _answer(kafka: KafkaSettings, bootstrap: str, check: str) -> Finding:
    from penstock.backbone.client.connection import Connection
    from penstock.backbone.connect import require_answer

    try:
        connection = Connection(bootstrap, replace(kafka, bootstrap=bootstrap))
        count = require_answer(connection, timeout=_ANSWER_LIMIT)
    except ConfigurationError as error:
        mend = "penstock config explain kafka.bootstrap"
        return Finding(check, "missing", f"{error.message}: {error.detail}", mend)
    return Finding(check, "ok", f"{bootstrap} answers, {count} broker{'' if count == 1 else 's'}")
