"""The keys of the settings: their names, types and limits, and how a given value is read."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from penstock.core.settings.masking import names_secret
from penstock.core.settings.settings import Secret, Settings
from penstock.core.units import UnitError, duration, duration_text, size

__all__ = [
    "ENVIRONMENT_PREFIX",
    "Key",
    "find_key",
    "is_secret",
    "known_keys",
    "read_value",
    "sections",
    "shown",
    "variable_of",
]

T = TypeVar("T")

ENVIRONMENT_PREFIX = "PENSTOCK_"

_CHOICES: Mapping[str, tuple[object, ...]] = {
    "kafka.brokers": (1, 3),
    "kafka.sasl_mechanism": ("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "kafka.security_protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "services.on_trimmed": ("stop", "skip"),
    "services.standby": ("off", "on"),
    "services.state": ("memory", "disk"),
    "spark.on_trimmed": ("stop", "skip"),
    "spark.share": ("on", "off"),
    "http.console": ("auto", "on", "off"),
}
_HEAPS = frozenset({"spark.driver_memory"})
_HEAP = re.compile(r"0*[1-9]\d*[kmgt]", re.ASCII | re.IGNORECASE)
"""What Java takes as the size of a heap: Spark hands it on as it is."""
_MAY_BE_ZERO = frozenset(
    {
        "spark.shuffle_partitions",
        "services.commit_interval",
        "http.port",
        "serving.port",
        "serving.calls_per_second",
        "logs.kept",
    }
)


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that can be set: its name, its type, its default and what it is for.

    An ``open`` key is a table of names to texts; its entries are keys of their own below it.
    """

    name: str
    type: Any
    default: Any
    help: str
    open: bool = False

    @property
    def secret(self) -> bool:
        """Whether its value is never shown."""
        return self.type is Secret

    def entry(self, name: str) -> "Key":
        """Return the key of one entry of an open key's table; its name may say it is a secret."""
        kind = Secret if names_secret(name) else str
        return Key(f"{self.name}.{name}", kind, None, self.help)


@cache
def known_keys() -> Mapping[str, Key]:
    """Return every key there is, by name, in the order of the settings."""
    return {key.name: key for key in _keys_of(Settings, "")}


def _keys_of(cls: Any, prefix: str) -> Iterator[Key]:
    hints = get_type_hints(cls)
    blank = cls()
    for member in fields(cls):
        default = getattr(blank, member.name)
        name = f"{prefix}{member.name}"
        if is_dataclass(default):
            yield from _keys_of(type(default), f"{name}.")
        else:
            opened = isinstance(default, Mapping)
            yield Key(name, hints[member.name], default, member.metadata["help"], opened)


def sections() -> tuple[str, ...]:
    """Return the names of the sections, in the order of the settings."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in known_keys() if "." in name))


def find_key(name: str) -> Key | None:
    """Return the key of this name, an entry of an open table included; None: there is none."""
    if found := known_keys().get(name):
        return found
    opened = (key for key in known_keys().values() if key.open)
    above = next((key for key in opened if name.startswith(f"{key.name}.")), None)
    return above.entry(name[len(above.name) + 1 :]) if above else None


def variable_of(key: str) -> str:
    """Return the variable that sets a key: ``PENSTOCK_KAFKA_BOOTSTRAP`` for ``kafka.bootstrap``."""
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()


def shown(value: Any) -> Any:
    """Return a value as people and JSON see it: durations as texts, secrets as ``***``."""
    if isinstance(value, Secret):
        return str(value) if len(value) else ""
    return duration_text(value) if isinstance(value, timedelta) else value


def is_secret(name: str, given: Any) -> bool:
    """Return whether a value that was given for a name is a secret, and not empty."""
    key = find_key(name)
    try:
        value = None if key is None else read_value(key, given)
    except ValueError:
        return False
    found = value.values() if isinstance(value, Mapping) else (value,)
    return any(isinstance(each, Secret) and len(each) > 0 for each in found)


def read_value(key: Key, given: Any) -> Any:
    """Return a given value as the key's type; ValueError says what it should be."""
    value = _typed(key, given)
    if key.name in _CHOICES and value not in _CHOICES[key.name]:
        words = ", ".join(repr(choice) for choice in _CHOICES[key.name])
        raise ValueError(f"{value!r} is not one of {words}")
    if key.name in _HEAPS and not _HEAP.fullmatch(value):
        raise ValueError(f"{value!r} is not the size of a heap; write 512m or 2g")
    if isinstance(value, int | timedelta):
        zero = type(value)()
        if value < zero or (value == zero and key.name not in _MAY_BE_ZERO):  # type: ignore[operator]
            raise ValueError(f"{given!r} is too small")
    return value


def _typed(key: Key, given: Any) -> Any:
    if key.open:
        return _table(given)
    if key.type is timedelta:
        if not isinstance(given, str):
            raise ValueError(f"{given!r} has no unit; write 500ms, 30s or 10m")
        return _unit(duration, given)
    if key.type is int:
        return _integer(given, is_size=key.name.endswith("_bytes"))
    if isinstance(given, str):
        # Of an entry of a table the value, too, may say that it is one.
        secret = key.secret or (key.name not in known_keys() and names_secret("", given))
        return Secret(given) if secret else given
    raise ValueError(f"{'it' if key.secret else repr(given)} is not a text; put it in quotes")


def _integer(given: Any, *, is_size: bool) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().removeprefix("-").isdecimal():
        return int(given)
    if isinstance(given, str) and is_size:
        return _unit(size, given)
    raise ValueError(f"{given!r} is not a {'number of bytes' if is_size else 'number'}")


def _unit(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except UnitError as error:
        raise ValueError(str(error)) from error


def _table(given: Any) -> dict[str, str]:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError as error:
            raise ValueError('it is not a JSON object, as {"spark.name": "value"}') from error
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise ValueError("it is not a table of names to texts")
    return {name: _entry(name, text) for name, text in given.items()}


def _entry(name: str, text: str) -> str:
    return Secret(text) if names_secret(name, text) else text
