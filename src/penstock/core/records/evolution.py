"""The rule by which a record type may change while its topic lives.

**The new type must read every record that any earlier type wrote**, because the log is the truth
and is replayed from any offset. So, deploy readers before writers.

May change: add an optional field; remove a field; make a field optional or nullable; int to
float; more choices; wider limits; another default; another class name.

Refused: a new required field (a renamed one is that, too); nullable or optional to required; any
other change of type; fewer choices; narrower limits; another key or event-time field. The way out
is a stream of a new name, filled by replaying the old one.
"""

from penstock.core.records.schema import (
    Choice,
    Field,
    FieldType,
    Limits,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    Schema,
)

__all__ = ["refusals"]


def refusals(old: Schema, new: Schema) -> list[str]:
    """Say everything that forbids reading records of ``old`` as ``new``; empty: allowed."""
    found = [] if old.key == new.key else [f"the key was {_names(old.key)}, is {_names(new.key)}"]
    if old.time != new.time:
        found.append(f"the event time was {old.time or 'none'}, is {new.time or 'none'}")
    return found + _fields(old, new, "")


def _fields(old: Schema, new: Schema, path: str) -> list[str]:
    found = []
    for field in new.fields:
        name = f"{path}{field.name}"
        before = old.field(field.name)
        if before is None:
            if not field.optional:
                found.append(f"{name} is new and required: records on the topic do not have it")
            continue
        found += _field(before, field, name)
    return found


def _field(old: Field, new: Field, name: str) -> list[str]:
    found = _type(old.type, new.type, name)
    if old.nullable and not new.nullable:
        found.append(f"{name} was nullable, is not")
    if old.optional and not new.optional:
        found.append(f"{name} was optional, is required")
    return found + [
        f"{name} had {_limit(old.limits, bound)}, has {bound}={value!r}"
        for bound, value in (new.limits or Limits()).to_json().items()
        if _narrower(bound, getattr(old.limits, bound, None), value)
    ]


def _type(old: FieldType, new: FieldType, name: str) -> list[str]:
    match old, new:
        case Choice(before), Choice(after):
            gone = [value for value in before if value not in after]
            return [f"{name} no longer takes {', '.join(gone)}"] if gone else []
        case ListOf(before), ListOf(after):
            return _type(before, after, f"{name}[]")
        case MapOf(before), MapOf(after):
            return _type(before, after, f"{name}{{}}")
        case Nested(before), Nested(after):
            return _fields(before, after, f"{name}.")
    widened = (old, new) == (Scalar("int"), Scalar("float")) or (
        isinstance(old, Choice) and new == Scalar("text")
    )
    return [] if old == new or widened else [f"{name} was {old}, is {new}"]


def _narrower(bound: str, old: float | str | None, new: float | str) -> bool:
    if old is None or isinstance(old, str) or isinstance(new, str):
        return old != new
    return new > old if bound in {"ge", "gt", "min_length"} else new < old


def _limit(limits: Limits | None, bound: str) -> str:
    value = getattr(limits, bound, None)
    return f"no {bound}" if value is None else f"{bound}={value!r}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
