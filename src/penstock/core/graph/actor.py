"""An actor as its class declares it: what it receives, and the fields that are its state."""

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec

from penstock.core.graph.signature import Definition, Signature, method, read_signature
from penstock.core.graph.state import StateSpec

__all__ = ["CONTEXT", "OWN_STATE", "ActorClass", "Receiver", "read_actor", "receiving"]

OWN_STATE = "self"
"""The name of the state that holds an actor's fields; no parameter can have it."""

CONTEXT = "context"
"""The name under which a receiver's Context is passed, whatever its own name for it is."""

_RECEIVE = "receive"
_MISSING: Any = object()
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Receiver:
    """A method that takes messages: its name, and what its annotations say."""

    name: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class ActorClass:
    """A class made ready to be an actor; ``fields`` is its state, with all first values."""

    receivers: tuple[Receiver, ...]
    definition: Definition
    """All receivers together, as one ``process``, with ``on_timer``."""
    fields: type[msgspec.Struct]
    problems: tuple[tuple[str, str], ...] = ()
    """What is wrong with it: a text, and a way out."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its fields."""
        return self.fields.__struct_fields__


def receiving(definition: Any) -> Iterator[str]:
    """Yield the names of the methods of a class that receive messages, as they are written."""
    names = chain.from_iterable(vars(each) for each in reversed(inspect.getmro(definition)))
    for name in dict.fromkeys(names):
        if name == _RECEIVE or name.startswith(f"{_RECEIVE}_"):
            yield name


def read_actor(definition: Any) -> ActorClass:
    """Return what a class says; what it cannot say is among the problems."""
    if not inspect.isclass(definition):
        text = "is not a class: there is an object of it for each key"
        return _unusable(text, "write @app.actor(...) above a class")
    receivers = tuple(
        Receiver(name, read_signature(getattr(definition, name), of_self=True))
        for name in receiving(definition)
        if method(definition, name)
    )
    if not receivers:
        return _unusable("receives nothing", "write def receive(self, message: ...) -> ...")
    on_timer = method(definition, "on_timer")
    fired = None if on_timer is None else read_signature(on_timer, of_self=True)
    try:
        fields, unusable = _fields(typing.cast("collections.abc.Hashable", definition))
    except (NameError, TypeError, ValueError) as error:
        return _unusable(f"has fields that cannot be read: {error}", "mend their annotations")
    problems = (*unusable, *_twice(receivers), *_strange(definition))
    states = (
        StateSpec(OWN_STATE, fields),
        *(s for each in receivers for s in each.signature.states),
    )
    whole = dict.fromkeys((*states, *(fired.states if fired else ())))
    found = Definition(_together(receivers), fired, tuple(whole))
    return ActorClass(receivers, found, fields, problems)


def _unusable(text: str, hint: str) -> ActorClass:
    nothing = Definition(Signature(gives=()))
    return ActorClass((), nothing, msgspec.defstruct("Nothing", []), ((text, hint),))


def _together(receivers: tuple[Receiver, ...]) -> Signature:
    """Return the signatures of all receivers as that of one method that takes all messages."""
    found = [each.signature for each in receivers]
    given = [each.gives for each in found]
    return Signature(
        takes=tuple(dict.fromkeys(kind for each in found for kind in each.takes)),
        states=tuple(dict.fromkeys(state for each in found for state in each.states)),
        context=CONTEXT if any(each.context for each in found) else None,
        timers=next((each.timers for each in found if each.timers), None),
        rows=tuple(dict.fromkeys(rows for each in found for rows in each.rows)),
        unknown=tuple(name for each in found for name in each.unknown),
        gives=None if None in given else tuple(kind for each in given for kind in each or ()),
        unaddressed=tuple(kind for each in found for kind in each.unaddressed),
        yields=any(each.yields for each in found),
        unreadable=next((each.unreadable for each in found if each.unreadable), ""),
        mistakes=tuple(mistake for each in found for mistake in each.mistakes),
    )


@lru_cache(maxsize=_REMEMBERED)
def _fields(definition: Any) -> tuple[type[msgspec.Struct], tuple[tuple[str, str], ...]]:
    """Return the annotated attributes as a struct whose every field has its first value.

    The same class gives the same struct, so that states of different tasks can be compared.
    """
    problems: list[tuple[str, str]] = []
    listed: list[tuple[str, Any, Any]] = []
    for name, hint in get_type_hints(definition, include_extras=True).items():
        if hint is ClassVar or get_origin(hint) is ClassVar:
            continue
        first = getattr(definition, name, _MISSING)
        if first is _MISSING:
            text = f"has a field {name!r} without a first value"
            problems.append(
                (text, f"write {name}: {_shown(hint)} = ..., which each actor begins with")
            )
            continue
        try:
            msgspec.json.schema(hint)
        except (TypeError, RuntimeError):
            text = f"has a field {name!r} that cannot be kept: {_shown(hint)} has no form in JSON"
            problems.append(
                (text, "JSON holds numbers, texts, instants, record types, lists, maps")
            )
            continue
        try:
            make = _made_anew(first, hint)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            text = f"has a field {name!r} whose first value cannot be kept: {error}"
            problems.append((text, f"give {name} a first value of {_shown(hint)}"))
            continue
        listed.append((name, hint, msgspec.field(default_factory=make)))
    fields = msgspec.defstruct(definition.__name__, listed, module=definition.__module__)
    return fields, tuple(problems)


def _made_anew(first: Any, hint: Any) -> Callable[[], Any]:
    """Return what gives a first value, a new one each time: actors share nothing."""
    encoded = msgspec.json.encode(first)
    decoder: Any = msgspec.json.Decoder(hint)
    if decoder.decode(encoded) != first:
        raise ValueError(f"{first!r} is {decoder.decode(encoded)!r} when it is read again")
    return lambda: decoder.decode(encoded)


def _twice(receivers: tuple[Receiver, ...]) -> Iterator[tuple[str, str]]:
    """Find types that more than one method receives."""
    taken: dict[Any, str] = {}
    for each in receivers:
        for kind in each.signature.takes:
            if (first := taken.setdefault(kind, each.name)) != each.name:
                shown = _shown(kind)
                hint = "one method receives one type: tell streams of one type apart by a Context"
                yield f"receives {shown} in {first} and in {each.name}", hint


def _strange(definition: type) -> Iterator[tuple[str, str]]:
    """Find methods of a service that mean nothing here."""
    ways: Mapping[str, str] = {
        "process": "call it receive: an actor's methods are named for what they receive",
        "open": "write __init__: it is called whenever an actor comes into memory",
        "close": "remove it: an actor that is passivated or moved is not told",
    }
    for name, hint in ways.items():
        if method(definition, name):
            yield f"has a method {name}, which nobody calls", hint


def _shown(kind: Any) -> str:
    return (
        typing.cast("str", getattr(kind, "__name__", str(kind)))
        if not get_args(kind)
        else str(kind)
    )
