r"""What a message of syslog says: RFC 5424, and RFC 3164 as it is really sent; no I/O, no clock.

Every byte of a message is in what is returned, or it is refused: nothing is left out in silence.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from penstock.errors import DataError

__all__ = ["SEVERITIES", "read_message"]

SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")

_PRIORITY = re.compile(rb"<(0|[1-9][0-9]{0,2})>")
_HIGHEST = 191
_HEADER = re.compile(rb"1 (\S{1,64}) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) ")
_ELEMENT = re.compile(rb"\[([!#-<>-\\^-~]{1,32})")
_PARAMETER = re.compile(rb' ([!#-<>-\\^-~]{1,32})="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(rb'\\(["\\\]])')
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_OLD_TIME = re.compile(
    rb"(" + b"|".join(_MONTHS) + rb") ([ 0-3]?[0-9]) ([0-9]{2}):([0-9]{2}):([0-9]{2}) "
)
_NEW_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(?:Z|[+-][0-9]{2}:[0-9]{2}) ")
_TAG = re.compile(rb"([\w./-]{1,64})(?:\[([^\]\s]{1,64})\])?: ?")
_HOST = re.compile(rb"([^\s:\[\]]{1,255}) ")
_IP6 = re.compile(rb"(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)([0-9A-Fa-f:.]{2,45}) ")
_BOM = b"\xef\xbb\xbf"
_HALF_A_YEAR = timedelta(days=183)


def read_message(data: bytes, *, received_at: datetime, zone: tzinfo = UTC) -> dict[str, Any]:
    """Return what a message says, by names; DataError where it is none.

    ``zone`` and the year of ``received_at`` are for times that have none.

    >>> at = datetime(2026, 11, 19, tzinfo=UTC)
    >>> found = read_message(b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", received_at=at)
    >>> found["severity"], found["host"], found["app"], found["text"]
    ('critical', 'mymachine', 'su', "'su root' failed")
    """
    priority = _PRIORITY.match(data)
    if priority is None or int(priority[1]) > _HIGHEST:
        raise _refused("it does not begin with a priority from <0> to <191>")
    facility, severity = divmod(int(priority[1]), 8)
    rest = data[priority.end() :]
    said = _said_new(rest) if rest.startswith(b"1 ") else _said_old(rest, received_at, zone)
    return {"facility": facility, "severity": SEVERITIES[severity], "level": severity} | said


def _said_new(rest: bytes) -> dict[str, Any]:
    """Return what a message of RFC 5424 says."""
    header = _HEADER.match(rest)
    if header is None:
        raise _refused("its header is not that of RFC 5424")
    time, host, app, process, kind = (None if each == b"-" else each for each in header.groups())
    data, end = _structured(rest, header.end())
    if rest[end : end + 1] not in (b"", b" "):
        raise _refused(f"there is no space behind its structured data, at byte {end}")
    return {
        "at": None if time is None else _instant(time),
        "host": _text_or_none(host),
        "app": _text_or_none(app),
        "process": _text_or_none(process),
        "kind": _text_or_none(kind),
        "data": data,
        "text": _text(rest[end + 1 :].removeprefix(_BOM)),
    }


def _structured(rest: bytes, at: int) -> tuple[dict[str, dict[str, str]], int]:
    """Return the structured data, and where it ends; values of a repeated name are joined."""
    if rest[at : at + 1] == b"-":
        return {}, at + 1
    found: dict[str, dict[str, str]] = {}
    while element := _ELEMENT.match(rest, at):
        at = element.end()
        values = found.setdefault(_text(element[1]), {})
        while parameter := _PARAMETER.match(rest, at):
            at = parameter.end()
            name, value = _text(parameter[1]), _text(_ESCAPED.sub(rb"\1", parameter[2]))
            values[name] = f"{values[name]}, {value}" if name in values else value
        if rest[at : at + 1] != b"]":
            raise _refused(f"its structured data is broken at byte {at}")
        at += 1
    if not found:
        raise _refused("it has neither structured data nor '-' for none")
    return found, at


def _said_old(rest: bytes, received_at: datetime, zone: tzinfo) -> dict[str, Any]:
    """Return what a message of RFC 3164 says: of what it lacks there is nothing."""
    at, begins = _old_time(rest, received_at, zone)
    rest = rest[begins:]
    host = app = process = None
    named = _IP6.match(rest) or (None if _TAG.match(rest) else _HOST.match(rest))
    if at is not None and named is not None:
        host, rest = named[1], rest[named.end() :]
    if at is not None and (tag := _TAG.match(rest)):
        app, process, rest = tag[1], tag[2], rest[tag.end() :]
    return {
        "at": at,
        "host": _text_or_none(host),
        "app": _text_or_none(app),
        "process": _text_or_none(process),
        "kind": None,
        "data": {},
        "text": _text(rest),
    }


def _old_time(rest: bytes, received_at: datetime, zone: tzinfo) -> tuple[datetime | None, int]:
    """Return the time at the beginning, and where it ends; None and 0 where there is none."""
    if new := _NEW_TIME.match(rest):
        try:
            return _instant(new[0].rstrip()), new.end()
        except DataError:
            return None, 0
    old = _OLD_TIME.match(rest)
    if old is None:
        return None, 0
    month = _MONTHS.index(old[1]) + 1
    day, hour, minute, second = (int(each) for each in old.groups()[1:])
    year = received_at.astimezone(zone).year
    nearest: datetime | None = None
    for each in (year - 1, year, year + 1):
        try:
            at = datetime(each, month, day, hour, minute, min(second, 59), tzinfo=zone)
        except ValueError:
            continue
        if abs(at - received_at) <= _HALF_A_YEAR:
            nearest = at
    return (None, 0) if nearest is None else (nearest.astimezone(UTC), old.end())


def _instant(time: bytes) -> datetime:
    try:
        at = datetime.fromisoformat(time.decode("ascii"))
        in_utc = at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _refused(f"its time cannot be read: {error}") from error
    if at.tzinfo is None:
        raise _refused("its time has no zone")
    return in_utc


def _text_or_none(value: bytes | None) -> str | None:
    return None if value is None else _text(value)


def _text(value: bytes) -> str:
    """Return a text; bytes that are no UTF-8 can be seen in it."""
    return value.decode("utf-8", "backslashreplace")


def _refused(text: str) -> DataError:
    return DataError(f"it is no message of syslog: {text}", code="data.not-syslog")
