"""Fetches what benchmarks compare with: jars by hash, into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

from penstock.machine.java.jars import Jar, JarSet
from penstock.machine.java.mirror import configured_mirror
from penstock.machine.places import cache_dir

SECONDS = 120


def home() -> Path:
    """Return where peers are kept; the second time they are there."""
    return cache_dir() / "bench"


def compiled(source: Path, below: Iterable[Path], *, peer: str) -> str:
    """Return a class path: a Java source, compiled, and the jars that it needs."""
    path = os.pathsep.join(map(str, below))
    classes = home() / f"classes-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not classes.exists():
        javac = shutil.which("javac")
        if javac is None:
            raise SystemExit(f"no javac: {peer} cannot be compared with")
        subprocess.run([javac, "-cp", path, "-d", str(classes), str(source)], check=True)
    return os.pathsep.join([str(classes), path])


def environment(package: str, *installs: Sequence[str]) -> Path:
    """Return the environment of a package, made by one pip after the other."""
    place = home() / package.replace("==", "-")
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        venv.create(place, with_pip=True, clear=True)
        for words in installs:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *words], check=True)
        (place / "ready").touch()
    return place


def fetched(coordinates: str, sha512: str) -> Path:
    """Return the jar of these coordinates; SystemExit where it is not the one of this hash."""
    group, artifact, version = coordinates.split(":")
    jar = Jar(JarSet.KAFKA, group, artifact, version, 0, "")
    target = home() / jar.file_name
    if target.exists():
        return target
    print(f"fetching {coordinates}", file=sys.stderr)
    mirror = configured_mirror()
    request = Request(mirror.address(jar.repository_path))  # noqa: S310 - see Mirror
    if mirror.authorization:
        request.add_unredirected_header("Authorization", mirror.authorization)
    with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - see Mirror
        body = response.read()
    if hashlib.sha512(body).hexdigest() != sha512:
        raise SystemExit(f"{coordinates} is not the jar that was measured with")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part")
    partial.write_bytes(body)
    partial.rename(target)
    return target
