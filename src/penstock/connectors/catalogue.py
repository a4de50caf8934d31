"""Which connectors there are, and what each takes: those of Penstock, and installed ones of others.

Another package offers a connector as an entry point of the group ``penstock.connectors``: its name,
and the function that makes it from options. What a connector is, is read from that function: its
options from the signature, their meaning from the docstring, its promise from what it makes.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from penstock.errors import ConfigurationError

__all__ = ["GROUP", "CatalogueEntry", "Option", "entries", "entry_of", "read_entry"]

GROUP = "penstock.connectors"
"""The group of entry points that other packages offer connectors in."""

Direction = Literal["source", "sink", "look-up", "connector"]
_ARGUMENT = re.compile(r"^    (\w+): (.*)$")
_PROMISES = {
    "exactly_once": "exactly once",
    "at_least_once": "at least once",
    "at_most_once": "at most once",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a connector."""

    name: str
    kind: str
    default: str
    """As it would be written; empty: it must be given."""
    meaning: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A connector: what it is called, what it does, what it takes."""

    name: str
    direction: Direction
    promise: str
    summary: str
    package: str
    options: tuple[Option, ...]
    text: str
    """What its docstring says before the options."""


def entries(own: Mapping[str, Callable[..., Any]]) -> list[CatalogueEntry]:
    """Return all connectors, those of Penstock first; one that does not load says so."""
    found = [read_entry(name, make, package="penstock") for name, make in sorted(own.items())]
    others = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return found + [_loaded(point) for point in others]


def entry_of(name: str, known: list[CatalogueEntry]) -> CatalogueEntry:
    """Return the connector of a name; ConfigurationError where there is none."""
    for entry in known:
        if entry.name == name:
            return entry
    from penstock.core.hints import did_you_mean

    raise ConfigurationError(
        f"there is no connector {name!r}",
        code="connector.unknown",
        hint=did_you_mean(name, [entry.name for entry in known]) or "penstock connectors list",
    )


def read_entry(name: str, make: Callable[..., Any], *, package: str) -> CatalogueEntry:
    """Return what the function that makes a connector says about it."""
    lines = (inspect.getdoc(make) or "").split("\n")
    meanings = dict(_meanings(lines))
    signature = inspect.signature(make)
    options = tuple(
        Option(
            parameter.name,
            _written(parameter.annotation),
            "" if parameter.default is parameter.empty else _default(parameter.default),
            meanings.get(parameter.name, ""),
        )
        for parameter in signature.parameters.values()
    )
    direction, promise = _promise(_made(make))
    return CatalogueEntry(
        name, direction, promise, lines[0], package, options, _before_options(lines)
    )


def _loaded(point: EntryPoint) -> CatalogueEntry:
    package = point.dist.name if point.dist else "?"
    try:
        return read_entry(point.name, point.load(), package=package)
    except Exception as error:  # noqa: BLE001 - code of others: the list goes on without it
        text = f"it does not load: {type(error).__name__}: {error}"
        return CatalogueEntry(point.name, "connector", "?", text, package, (), text)


def _made(make: Callable[..., Any]) -> Any:
    """Return the class of what a function makes; None where it does not say."""
    if inspect.isclass(make):
        return make
    try:
        return typing.get_type_hints(make).get("return")
    except (NameError, TypeError):
        return None


def _promise(made: Any) -> tuple[Direction, str]:
    if getattr(made, "direction", None) == "look-up":
        return "look-up", "rows as they were when they were asked for"
    if callable(getattr(made, "splits", None)) or callable(getattr(made, "attach", None)):
        return "source", "exactly once"
    if callable(getattr(made, "run", None)):
        return "source", "once, or lost when the process is killed"
    if callable(getattr(made, "open", None)):
        return "sink", _PROMISES.get(_delivery(made), "see its page")
    return "connector", "?"


def _delivery(made: Any) -> str:
    if is_dataclass(made):
        for each in fields(made):
            if each.name == "delivery" and each.default is not MISSING:
                return str(each.default)
    found = getattr(made, "delivery", "")
    return found if isinstance(found, str) else ""


def _written(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return "any"
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)
    if typing.get_origin(annotation) is Literal:
        return " or ".join(repr(each) for each in typing.get_args(annotation))
    return text.replace(" | ", " or ")


def _default(value: Any) -> str:
    total = getattr(value, "total_seconds", None)
    return f"{total():g}s" if callable(total) else repr(value)


def _meanings(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what the section of a docstring says about each argument."""
    name, words = "", [""]
    inside = False
    for line in [*lines, "End:"]:
        if inside and (found := _ARGUMENT.match(line)):
            if name:
                yield name, " ".join(words)
            name, words = found[1], [found[2]]
        elif inside and line.startswith("     "):
            words.append(line.strip())
        elif line.strip() and not line.startswith(" "):
            if name:
                yield name, " ".join(words)
            name, inside = "", line == "Args:"


def _before_options(lines: list[str]) -> str:
    sections = [n for n, line in enumerate(lines) if line in ("Args:", "Examples:", "Returns:")]
    return "\n".join(lines[: sections[0]] if sections else lines).strip()
