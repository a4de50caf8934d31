"""What a service asks for and gives, read from the annotations of its function or its class."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from penstock.core.graph.changes import Change
from penstock.core.graph.data import Output
from penstock.core.graph.rows import Rows
from penstock.core.graph.state import Context, ListState, MapState, State, StateSpec, Ttl, ttl
from penstock.core.graph.timer import Timers
from penstock.core.units import UnitError, duration, duration_text

__all__ = ["Definition", "Signature", "is_async", "method", "read_definition", "read_signature"]

_MANY: tuple[Any, ...] = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.AsyncIterable,
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    list,
    tuple,
)
_KINDS: tuple[Any, ...] = (State, ListState, MapState)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, told apart by annotation. ``gives`` is None when not annotated."""

    takes: tuple[Any, ...] = ()
    changes: tuple[Any, ...] = ()
    """Those of ``takes`` that come as a ``Change``, where they are rows of a table."""
    states: tuple[StateSpec, ...] = ()
    context: str | None = None
    timers: str | None = None
    rows: tuple[tuple[str, Any], ...] = ()
    """Parameters that take the rows of a broadcast table, and of which type they are."""
    unknown: tuple[str, ...] = ()
    gives: tuple[Any, ...] | None = None
    unaddressed: tuple[Any, ...] = ()
    """Those of ``gives`` that do not come as an ``Output``, which names its stream."""
    yields: bool = False
    unreadable: str = ""
    mistakes: tuple[tuple[str, str], ...] = ()
    """States that are asked for in a way that means something else: what, and how to write it."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a service is made of: a function alone, or a class with ``process`` and the others."""

    process: Signature
    on_timer: Signature | None = None
    states: tuple[StateSpec, ...] = field(default=(), compare=False)
    """Those of both methods, each once."""

    @property
    def rows(self) -> tuple[tuple[str, Any], ...]:
        """Return the parameters of both methods that take rows, each once."""
        fired = self.on_timer.rows if self.on_timer else ()
        return tuple(dict.fromkeys((*self.process.rows, *fired)))


def method(definition: Any, name: str = "process") -> Callable[..., Any] | None:
    """Return a method of the class or object that a service is; a function is its own process."""
    if inspect.isfunction(definition) or inspect.isbuiltin(definition):
        return definition if name == "process" else None
    found = getattr(definition, name, None)
    if found is None and name == "process" and not inspect.isclass(definition):
        return definition if callable(definition) else None
    return found if callable(found) else None


def is_async(definition: Any) -> bool:
    """Return whether any method of a service is to be awaited."""
    names = ["process", "on_timer", "open", "close"]
    if inspect.isclass(definition) and not hasattr(definition, "process"):
        names += [name for name in dir(definition) if name.startswith("receive")]  # an actor
    methods = [method(definition, name) for name in names]
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in methods)


def read_definition(definition: Any) -> Definition:
    """Return what the annotations of a function, a class or an object say."""
    process, on_timer = method(definition), method(definition, "on_timer")
    of_self = inspect.isclass(definition)
    if process is None:
        text = f"{getattr(definition, '__name__', definition)!s} has no method process"
        return Definition(Signature(unreadable=text))
    read = read_signature(process, of_self=of_self)
    fired = None if on_timer is None else read_signature(on_timer, of_self=of_self)
    states = dict.fromkeys((*read.states, *(fired.states if fired else ())))
    return Definition(read, fired, tuple(states))


def read_signature(function: Callable[..., Any], *, of_self: bool = False) -> Signature:
    """Return what the annotations say; what cannot be read is said in ``unreadable``.

    ``of_self`` leaves out the first parameter, the object.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[of_self:]
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        return Signature(unreadable=str(error))
    states, unknown, mistakes, rows = [], [], [], []
    context = timers = None
    for parameter in parameters[1:]:
        hint = hints.get(parameter.name)
        if mistake := _mistake(parameter.name, hint):
            mistakes.append(mistake)
        elif spec := _state(parameter.name, hint):
            states.append(spec)
        elif get_origin(hint) is Rows:
            rows.append((parameter.name, get_args(hint)[0]))
        elif hint is Context:
            context = parameter.name
        elif hint is Timers:
            timers = parameter.name
        else:
            unknown.append(str(parameter).partition(":")[0].partition("=")[0].strip())
    asked = _alternatives(hints[parameters[0].name]) if _annotated(parameters, hints) else ()
    takes = tuple(dict.fromkeys(_taken(each) for each in asked))
    given = _outputs(hints["return"]) if "return" in hints else None
    return Signature(
        takes=takes,
        changes=tuple(_taken(each) for each in asked if get_origin(each) is Change),
        states=tuple(states),
        context=context,
        timers=timers,
        rows=tuple(rows),
        unknown=tuple(unknown),
        gives=None if given is None else tuple(each for each, _ in given),
        unaddressed=tuple(each for each, addressed in given or () if not addressed),
        yields=inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function),
        mistakes=tuple(mistakes),
    )


def _state(name: str, hint: Any) -> StateSpec | None:
    """Return the state that a parameter asks for, None where it asks for something else."""
    span = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        span = next((note.span for note in notes if isinstance(note, Ttl)), None)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is State:
        return StateSpec(name, arguments[0], ttl=span)
    if origin is ListState:
        return StateSpec(name, arguments[0], "list", ttl=span)
    if origin is MapState:
        return StateSpec(name, arguments[1], "map", arguments[0], ttl=span)
    return None


def _mistake(name: str, hint: Any) -> tuple[str, str] | None:
    """Return what is wrong with how a state is asked for and how it is written; None: nothing."""
    notes: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes = tuple(rest)
    kind = hint if hint in _KINDS else get_origin(hint)
    if kind not in _KINDS:
        return None
    if hint in _KINDS:
        example = {ListState: "ListState[float]", MapState: "MapState[str, int]"}
        written = f"{name}: {example.get(kind, 'State[int]')}, for example"
        return f"{name!r} does not say what it holds", written
    arguments = get_args(hint)
    inner = [note for each in arguments for note in get_args(each)[1:] if isinstance(note, Ttl)]
    right = f"{name}: Annotated[{kind.__name__}[...], ttl({{}})]"
    if inner:
        span = duration_text(inner[0].span)
        return f"{name!r} has a time to live inside the brackets", right.format(f'"{span}"')
    for note in notes:
        if isinstance(note, timedelta) or note is ttl or _is_duration(note):
            shown = '"1h"' if note is ttl else note if isinstance(note, timedelta) else f'"{note}"'
            return f"{name!r} has {shown} beside it, which is not a ttl(...)", right.format(shown)
    return None


def _is_duration(note: Any) -> bool:
    try:
        duration(note)
    except UnitError:
        return False
    return True


def _annotated(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> bool:
    return bool(parameters) and parameters[0].name in hints


def _taken(kind: Any) -> Any:
    """Return the type of record that a parameter asks for, be it with what was before."""
    return get_args(kind)[0] if get_origin(kind) is Change else kind


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in {Union, types.UnionType}:
        return tuple(part for part in get_args(hint) if part is not type(None))
    return () if hint is type(None) else (hint,)


def _outputs(hint: Any) -> list[tuple[Any, bool]]:
    """Return each type that is given, and whether it comes as an ``Output``."""
    found: list[tuple[Any, bool]] = []
    for part in _alternatives(hint):
        origin = get_origin(part)
        inner = [each for each in get_args(part) if each is not Ellipsis] or [typing.Any]
        if part is Output or origin is Output:
            found += [(each, True) for each in _alternatives(inner[0])]
        elif part in _MANY or origin in _MANY:
            for each in inner if origin is tuple else inner[:1]:
                found += _outputs(each)
        else:
            found.append((part, False))
    return found
