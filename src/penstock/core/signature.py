"""What a service's function asks for and gives, read from its annotations."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from penstock.core.graph import Output
from penstock.core.state import Context, State, StateSpec

__all__ = ["Signature", "read_signature"]

_MANY: tuple[Any, ...] = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Sequence,
    collections.abc.Collection,
    list,
    tuple,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, told apart by annotation. ``gives`` is None when not annotated."""

    takes: tuple[Any, ...] = ()
    states: tuple[StateSpec, ...] = ()
    context: str | None = None
    unknown: tuple[str, ...] = ()
    gives: tuple[Any, ...] | None = None
    unreadable: str = ""


def read_signature(function: Callable[..., Any]) -> Signature:
    """Return what the annotations say; what cannot be read is said in ``unreadable``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        return Signature(unreadable=str(error))
    states, unknown = [], []
    context = None
    for parameter in parameters[1:]:
        hint = hints.get(parameter.name)
        if get_origin(hint) is State:
            states.append(StateSpec(parameter.name, get_args(hint)[0]))
        elif hint is Context:
            context = parameter.name
        else:
            unknown.append(parameter.name)
    takes = _alternatives(hints[parameters[0].name]) if _annotated(parameters, hints) else ()
    gives = _outputs(hints["return"]) if "return" in hints else None
    return Signature(takes, tuple(states), context, tuple(unknown), gives)


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
