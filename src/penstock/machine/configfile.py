"""Finding and reading ``penstock.toml`` and the environment, as layers for the settings."""

import difflib
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.core.hints import did_you_mean
from penstock.core.settings.configuration import Configuration, GivenValue, Layer, resolve
from penstock.core.settings.keys import (
    ENVIRONMENT_PREFIX,
    is_secret,
    known_keys,
    sections,
    variable_of,
)
from penstock.core.settings.settings import Settings
from penstock.errors import ConfigurationError
from penstock.machine.places import Places
from penstock.machine.private import OWNER_ONLY

__all__ = ["FILE_NAME", "Loaded", "find_file", "line_numbers", "load_configuration"]

FILE_NAME = "penstock.toml"
_FILE_VARIABLE = "PENSTOCK_CONFIG"
_PROFILE_VARIABLE = "PENSTOCK_PROFILE"
_OTHER_VARIABLES = frozenset(
    {_FILE_VARIABLE, _PROFILE_VARIABLE, "PENSTOCK_CACHE", "PENSTOCK_MAVEN_MIRROR"}
)
_PROFILES = "profiles"
_LIKENESS = 0.85


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that was read: its settings ready for use, and where they apply.

    In :attr:`settings` relative paths have been put under the file's directory, in
    :attr:`configuration` they stand as they were given.
    """

    configuration: Configuration
    settings: Settings
    places: Places
    file: Path | None
    profile: str | None


def load_configuration(
    *,
    file: Path | None = None,
    profile: str | None = None,
    flags: Mapping[str, str] | None = None,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """Read file, profile, environment and flags; a flag wins over all, the file over defaults.

    The file is the one given, else ``$PENSTOCK_CONFIG``, else ``penstock.toml`` in ``directory``
    or above it, else none. Raises ConfigurationError with all problems of all of these.
    """
    directory = (directory or Path.cwd()).absolute()
    environment = os.environ if environment is None else environment
    named = file or (Path(text) if (text := environment.get(_FILE_VARIABLE)) else None)
    found = (directory / named.expanduser()) if named else find_file(directory)
    profile = profile or environment.get(_PROFILE_VARIABLE) or None
    base, profiles = _read_file(found, directory) if found else ({}, {})
    if found:
        _refuse_open_secrets(found, [base, *profiles.values()])
    if profile is not None and profile not in profiles:
        raise ConfigurationError(
            f"there is no profile {profile!r}",
            code="config.unknown-profile",
            detail=f"looked in {found}" if found else f"there is no {FILE_NAME}",
            hint=did_you_mean(profile, profiles),
        )
    flag_layer = {name: GivenValue(text, f"--set {name}") for name, text in (flags or {}).items()}
    configuration = resolve(
        [
            Layer("file", base),
            *([Layer("profile", profiles[profile])] if profile else []),
            Layer("environment", _read_environment(environment)),
            Layer("flag", flag_layer),
        ],
        unused=[Layer("profile", given) for name, given in profiles.items() if name != profile],
    )
    anchor = found.parent if found else directory
    settings = _anchored(configuration.settings, anchor)
    return Loaded(configuration, settings, Places(Path(settings.home)), found, profile)


def find_file(directory: Path) -> Path | None:
    """Return the nearest ``penstock.toml`` in a directory or above it."""
    places = (above / FILE_NAME for above in (directory, *directory.parents))
    return next((path for path in places if path.is_file()), None)


def _read_file(
    path: Path, directory: Path
) -> tuple[dict[str, GivenValue], dict[str, dict[str, GivenValue]]]:
    """Return what the file gives by itself, and what each of its profiles gives."""
    shown = path.relative_to(directory) if path.is_relative_to(directory) else path
    try:
        text = path.read_text(encoding="utf-8")
        tree = tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(
            f"{shown} cannot be read: {error.strerror}",
            code="config.file",
            hint="penstock doctor",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{shown} is not TOML: {error}", code="config.syntax", hint="see docs/configuration.md"
        ) from error
    lines = line_numbers(text)

    def layer(tree: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, GivenValue]:
        given = {}
        for names, value in _leaves(tree):
            line = lines.get((*above, *names))
            given[".".join(names)] = GivenValue(value, f"{shown}:{line}" if line else str(shown))
        return given

    profiles = tree.pop(_PROFILES, {})
    if not isinstance(profiles, dict) or not all(isinstance(t, dict) for t in profiles.values()):
        line = lines.get((_PROFILES,), 1)
        raise ConfigurationError(
            f"{shown}:{line}: 'profiles' contains something that is not a profile",
            code="config.invalid",
            hint="write [profiles.NAME.kafka] above the settings of a profile",
        )
    return layer(tree, ()), {
        name: layer(inner, (_PROFILES, name)) for name, inner in profiles.items()
    }


def _refuse_open_secrets(path: Path, layers: Iterable[Mapping[str, GivenValue]]) -> None:
    """Refuse a file that holds secrets and that others than its owner may read or change."""
    mode = stat.S_IMODE(path.stat().st_mode)
    held = [
        f"{given.where}: {name}"
        for layer in layers
        for name, given in layer.items()
        if is_secret(name, given.value)
    ]
    if held and mode & OWNER_ONLY:
        raise ConfigurationError(
            f"{path.name} holds secrets, and other users may read it (mode {mode:03o})",
            code="config.readable",
            detail="\n  ".join(held),
            hint=f"chmod 600 {path}, or put the secrets into environment variables",
        )


def _leaves(
    tree: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tree.items():
        path = (*above, name)
        if isinstance(value, dict):
            yield from _leaves(value, path)
        else:
            yield path, value


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the line each key of a TOML text stands on, by its path.

    Lines are read one by one, so keys that span several (none of ours do) are not found.
    """
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        try:
            if stripped.startswith("["):
                table = _single_path(tomllib.loads(stripped))
                found.setdefault(table, number)
            elif "=" in stripped and not stripped.startswith("#"):
                for path in _paths_of(stripped):
                    found.setdefault((*table, *path), number)
        except tomllib.TOMLDecodeError:
            continue  # the inside of a text or a list of several lines
    return found


def _paths_of(line: str) -> list[tuple[str, ...]]:
    try:
        return [path for path, _ in _leaves(tomllib.loads(line))]
    except tomllib.TOMLDecodeError:
        # The first line of a value of several lines: its key alone is read.
        return [path for path, _ in _leaves(tomllib.loads(f"{line.partition('=')[0]} = 0"))]


def _single_path(tree: Any) -> tuple[str, ...]:
    path: list[str] = []
    while isinstance(tree, dict) and tree:
        name, tree = next(iter(tree.items()))
        path.append(name)
    return tuple(path)


def _read_environment(environment: Mapping[str, str]) -> dict[str, GivenValue]:
    """Return the settings among the variables, and what looks like a mistyped one.

    An empty variable counts as not set.
    """
    known = {variable_of(key): key for key in known_keys()}
    prefixes = tuple(f"{variable_of(section)}_" for section in sections())
    given = {}
    for variable, text in sorted(environment.items()):
        ours = variable.startswith(ENVIRONMENT_PREFIX) and variable not in _OTHER_VARIABLES
        if not ours or not text:
            continue
        name = known.get(variable)
        if name is None and variable.startswith(prefixes):
            section, _, rest = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("_")
            name = f"{section}.{rest}"
        if name is None and difflib.get_close_matches(variable, known, cutoff=_LIKENESS):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".", 1)
        if name is not None:
            given[name] = GivenValue(text, variable)
    return given


def _anchored(settings: Settings, directory: Path) -> Settings:
    """Return the settings with relative paths put under a directory; addresses stay."""

    def anchor(text: str) -> str:
        if not text or "://" in text:
            return text
        return str(directory / Path(text).expanduser())

    kafka = settings.kafka
    return replace(
        settings,
        home=anchor(settings.home),
        kafka=replace(
            kafka,
            tls_ca_file=anchor(kafka.tls_ca_file),
            tls_certificate_file=anchor(kafka.tls_certificate_file),
            tls_key_file=anchor(kafka.tls_key_file),
        ),
        serving=replace(
            settings.serving,
            tokens_file=anchor(settings.serving.tokens_file),
            jwks_file=anchor(settings.serving.jwks_file),
            tls_certificate_file=anchor(settings.serving.tls_certificate_file),
            tls_key_file=anchor(settings.serving.tls_key_file),
        ),
        spark=replace(settings.spark, checkpoint_dir=anchor(settings.spark.checkpoint_dir)),
        lake=replace(settings.lake, path=anchor(settings.lake.path)),
    )
