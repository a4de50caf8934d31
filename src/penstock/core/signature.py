"""What a service asks for and gives, read from the annotations of its function or its class."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from penstock.core.graph import Output
from penstock.core.state import Context, ListState, MapState, State, StateSpec, Ttl
from penstock.core.timer import Timers

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


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, told apart by annotation. ``gives`` is None when not annotated."""

    takes: tuple[Any, ...] = ()
    states: tuple[StateSpec, ...] = ()
    context: str | None = None
    timers: str | None = None
    unknown: tuple[str, ...] = ()
    gives: tuple[Any, ...] | None = None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a service is made of: a function alone, or a class with ``process`` and the others."""

    process: Signature
    on_timer: Signature | None = None
    states: tuple[StateSpec, ...] = field(default=(), compare=False)
    """Those of both methods, each once."""


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
    methods = [method(definition, name) for name in ("process", "on_timer", "open", "close")]
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
    states, unknown = [], []
    context = timers = None
    for parameter in parameters[1:]:
        hint = hints.get(parameter.name)
        if spec := _state(parameter.name, hint):
            states.append(spec)
        elif hint is Context:
            context = parameter.name
        elif hint is Timers:
            timers = parameter.name
        else:
            unknown.append(parameter.name)
    takes = _alternatives(hints[parameters[0].name]) if _annotated(parameters, hints) else ()
    gives = _outputs(hints["return"]) if "return" in hints else None
    return Signature(takes, tuple(states), context, timers, tuple(unknown), gives)


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


def _annotated(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> bool:
    return bool(parameters) and parameters[0].name in hints


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in {Union, types.UnionType}:
        return tuple(part for part in get_args(hint) if part is not type(None))
    return () if hint is type(None) else (hint,)


def _outputs(hint: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for part in _alternatives(hint):
        origin = get_origin(part)
        if origin is Output:
            found += _alternatives(get_args(part)[0])
        elif origin in _MANY:
            found += _outputs(get_args(part)[0]) if get_args(part) else [typing.Any]
        else:
            found.append(part)
    return tuple(found)
