"""Settings out of layers of given values, each with where it came from.

A layer is what one place gives: the file, a profile of it, the environment, a flag. Later layers
win. Reading files and the environment is the work of ``machine/configfile.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias

from penstock.core.hints import did_you_mean
from penstock.core.settings.keys import (
    Key,
    find_key,
    is_secret,
    known_keys,
    read_value,
    sections,
    variable_of,
)
from penstock.core.settings.settings import Settings
from penstock.errors import ConfigurationError

__all__ = [
    "Configuration",
    "GivenValue",
    "Layer",
    "LayerName",
    "Resolved",
    "problems_in",
    "resolve",
]

_MOVED = {"services.http_port": "http.port"}
"""Settings that have another name now."""

LayerName: TypeAlias = Literal["default", "file", "profile", "environment", "flag"]


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value as it was given, and where: ``penstock.toml:7``, a variable, a flag."""

    value: Any = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place gives, by the full name of the key."""

    name: LayerName
    given: Mapping[str, GivenValue]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A key with its value, which layer it came from, and what that layer overrode."""

    key: Key
    value: Any
    layer: LayerName
    where: str
    overrode: tuple["Resolved", ...] = ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, and for each key how it came to its value."""

    settings: Settings
    resolved: Mapping[str, Resolved]

    def explain(self, name: str) -> Resolved:
        """Return how a key came to its value; ConfigurationError where it is no key."""
        if name in self.resolved:
            return self.resolved[name]
        raise ConfigurationError(
            f"{name!r} is not a setting",
            code="config.unknown-key",
            hint=did_you_mean(name, self.resolved),
        )


def resolve(layers: Sequence[Layer], *, unused: Sequence[Layer] = ()) -> Configuration:
    """Return the settings that the layers give, lowest first, on top of the defaults.

    Raises one ConfigurationError (``config.invalid``) with everything that is wrong in any layer,
    the unused ones (profiles that were not chosen) included.
    """
    problems = [problem for layer in (*layers, *unused) for problem in problems_in(layer)]
    if problems:
        raise ConfigurationError(
            f"the configuration has {len(problems)} problem{'' if len(problems) == 1 else 's'}",
            code="config.invalid",
            detail="\n  ".join(problems),
            hint="penstock config show: every setting there is",
        )
    resolved = {
        key.name: Resolved(key, key.default, "default", "default")
        for key in known_keys().values()
        if not key.open
    }
    for layer in layers:
        for key, value, where in _entries(layer):
            before = resolved.get(key.name)
            overrode = (before, *before.overrode) if before else ()
            resolved[key.name] = Resolved(key, value, layer.name, where, overrode)
    return Configuration(_assemble(resolved), resolved)


def problems_in(layer: Layer) -> list[str]:
    """Return what is wrong in a layer, each with where it is; empty: nothing."""
    found = []
    for name, given in layer.given.items():
        key = find_key(name)
        if key is None:
            found.append(f"{given.where}: {_unknown(name)}")
        else:
            try:
                read_value(key, given.value)
            except ValueError as error:
                found.append(f"{given.where}: {name}: {error}")
                continue
            if layer.name == "flag" and is_secret(name, given.value):
                text = f"{name} is a secret, and a flag is seen by everybody on the machine"
                found.append(f"{given.where}: {text}; set the variable {_variable(key)}")
    return found


def _variable(key: Key) -> str:
    """Return the variable that sets a key; an entry of a table is set with the table."""
    opened = (each.name for each in known_keys().values() if each.open)
    table = next((name for name in opened if key.name.startswith(f"{name}.")), None)
    return variable_of(table or key.name)


def _unknown(name: str) -> str:
    if name in sections():
        return f"{name!r} is a section, not a setting; write [{name}] above its settings"
    if name in _MOVED:
        return f"{name!r} is called {_MOVED[name]!r} now"
    section, _, _ = name.rpartition(".")
    if not section:
        top = [key for key in known_keys() if "." not in key]
        return f"{name!r} is not a setting or a section; {did_you_mean(name, [*sections(), *top])}"
    beside = [key for key in known_keys() if key.startswith(f"{section}.")]
    return f"{name!r} is not a setting; {did_you_mean(name, beside or known_keys())}"


def _entries(layer: Layer) -> Iterator[tuple[Key, Any, str]]:
    """Yield what a layer sets, a table of names to texts as one entry each."""
    for name, given in layer.given.items():
        key = find_key(name)
        if key is None:
            continue
        value = read_value(key, given.value)
        if key.open:
            yield from ((key.entry(each), text, given.where) for each, text in value.items())
        else:
            yield key, value, given.where


def _assemble(resolved: Mapping[str, Resolved]) -> Settings:
    def build(blank: Any, prefix: str) -> Any:
        values = {}
        for member in fields(blank):
            name, default = f"{prefix}{member.name}", getattr(blank, member.name)
            if is_dataclass(default):
                values[member.name] = build(default, f"{name}.")
            elif isinstance(default, Mapping):
                below = f"{name}."
                values[member.name] = {
                    key.removeprefix(below): found.value
                    for key, found in resolved.items()
                    if key.startswith(below)
                }
            else:
                values[member.name] = resolved[name].value
        return type(blank)(**values)

    settings: Settings = build(Settings(), "")
    return settings
