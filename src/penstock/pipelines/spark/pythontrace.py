"""The Python trace in an error's text: what was raised last, and on which line of the user's."""

import re
from dataclasses import dataclass
from pathlib import Path

import penstock
from penstock.errors import Place

__all__ = ["Raised", "raised_in"]

_BEGIN = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
_MODULE = re.compile(r"^\w+(\.\w+)*\.(?=\w+(:|$))")
_AFTER = ("\tat ", "===", "JVM stacktrace", " SQLSTATE")
"""How what Spark adds below a trace begins; Python itself goes on after an empty line."""

_OURS = re.compile(
    rf"^{re.escape(str(Path(penstock.__file__).parent))}/"
    r"|/(site|dist)-packages/(penstock|py4j|pyspark|confluent_kafka)/|/pyspark\.zip/|/py4j-[^/]*/"
)
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3\.\d+/|^<")


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception by its trace; without a place no line of the user's had a part in it."""

    said: str
    place: Place | None
    function: str


def raised_in(text: str) -> Raised | None:
    """Return the exception of the last Python trace in a text; None where there is no trace.

    Its place is the innermost line of the user's, unless Penstock, PySpark, or the Kafka client
    was called from there and raised it: what the user calls of other libraries is the user's.
    """
    trace = text.rpartition(_BEGIN)
    if not trace[1]:
        return None
    frames: list[re.Match[str]] = []
    said: list[str] = []
    for line in trace[2].splitlines():
        if line.startswith(_AFTER) or (said and not line.strip()):
            break
        if (frame := _FRAME.match(line)) is not None and not said:
            frames.append(frame)
        elif said or (line and not line[0].isspace()):
            said.append(line.strip())
    if not said:
        return None
    found = _users(frames)
    place = Place(found["file"], int(found["line"])) if found else None
    return Raised(_MODULE.sub("", " ".join(said)), place, found["function"] if found else "")


def _users(frames: list[re.Match[str]]) -> re.Match[str] | None:
    for frame in reversed(frames):
        if _OURS.search(frame["file"]):
            return None
        if not _LIBRARY.search(frame["file"]):
            return frame
    return None
