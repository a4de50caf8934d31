"""Fetches what benchmarks compare with: jars by hash, into the user's cache."""

import hashlib
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from penstock.machine.jars import Jar, JarSet
from penstock.machine.mirror import configured_mirror
from penstock.machine.places import cache_dir

SECONDS = 120


def home() -> Path:
    """Return where peers are kept; the second time they are there."""
    return cache_dir() / "bench"


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
