"""Record types: one class declaration gives the codec, the schema, the key and the event time."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as value_field
from typing import Any, Generic, TypeVar, dataclass_transform, get_type_hints

import msgspec

from penstock.core.hints import did_you_mean
from penstock.core.matching.pattern import PatternError
from penstock.core.place import caller
from penstock.core.records.annotations import SCHEMA_ATTRIBUTE, SUPPORTED, read_field
from penstock.core.records.bounds import BoundError
from penstock.core.records.schema import Choice, Field, FieldType, Scalar, Schema
from penstock.core.records.structs import struct_of
from penstock.errors import Place, Problem

__all__ = [
    "RECORD_ATTRIBUTE",
    "RecordType",
    "is_key_type",
    "made_record",
    "record",
    "record_of",
    "record_type",
]

T = TypeVar("T")

RECORD_ATTRIBUTE = "__penstock_record__"
"""Where a class marked with ``record`` keeps its record type."""
_KEY_SCALARS = {"text", "int", "bool", "instant", "date"}


@dataclass(frozen=True, slots=True)
class RecordType(Generic[T]):
    """What Penstock knows about a class marked with ``record``."""

    cls: type[T] = value_field(compare=False)
    schema: Schema
    place: Place | None = value_field(default=None, compare=False)
    problems: tuple[Problem, ...] = value_field(default=(), compare=False)

    @property
    def name(self) -> str:
        """Return the class's name."""
        return self.schema.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the schema: another process has a class of it, without the user's code."""
        return made_record, (self.schema, self.place)


@dataclass_transform(frozen_default=True)
def record(
    *, key: str | tuple[str, ...] | None = None, time: str | None = None
) -> Callable[[type[T]], type[T]]:
    """Make a class a record type: frozen, typed, validated, the same on every engine.

    The fields decide the JSON on the log, the schema on Spark and what is validated. A field typed
    ``X | None``, or with a default, may be absent. Nothing is raised here: ``penstock check``
    reports what is wrong, with everything else.

    Args:
        key: The field, or fields in a tuple, whose text is the key on the log.
        time: The field that says when it happened: a ``datetime`` with a time zone, or an ``int``
            of milliseconds since 1970.

    Examples:
        >>> @record(key="word")
        ... class Count:
        ...     word: str
        ...     count: int = 0
        >>> Count("water", 3)
        Count(word='water', count=3)
    """
    place = caller()

    def decorate(cls: type[T]) -> type[T]:
        names: Any = () if key is None else key
        fields = tuple(names) if isinstance(names, tuple | list) else (names,)
        return _build(cls, fields, time, place)

    return decorate


def record_type(cls: type[T]) -> RecordType[T] | None:
    """Return what ``record`` made of a class, or None where it was not used."""
    found = getattr(cls, RECORD_ATTRIBUTE, None)
    return found if isinstance(found, RecordType) else None


def made_record(schema: Schema, place: Place | None = None) -> RecordType[Any]:
    """Return a record type of this schema, as if a class had been marked with ``record``.

    Its fields are given by name.
    """
    cls = struct_of(schema, frozen=True)
    found = RecordType(cls, schema, place)
    setattr(cls, RECORD_ATTRIBUTE, found)
    setattr(cls, SCHEMA_ATTRIBUTE, schema)
    return found


def record_of(schema: Schema, *, closed: bool = False) -> RecordType[Any]:
    """Return a record type of this schema, with a class of its own.

    A ``closed`` one refuses fields that nobody declared, at any depth.
    """
    return RecordType(struct_of(schema, closed=closed), schema)


def _build(cls: type[T], key: tuple[str, ...], time: str | None, place: Place | None) -> type[T]:
    problems: list[Problem] = []
    fields: list[Field] = []
    members: list[tuple[str, Any, Any]] = []
    for name, hint in _hints(cls, place, problems).items():
        given = cls.__dict__.get(name, msgspec.NODEFAULT)
        try:
            field, annotation = read_field(name, hint, given, event_time=name == time)
        except PatternError as problem:
            text = f"{cls.__name__}.{name}: at {problem.offset + 1} in the pattern: {problem}"
            advice = "docs/expressions.md#patterns lists what a pattern may contain"
            problems.append(Problem("record.pattern", text, advice, place))
            field, annotation = Field(name=name, type=Scalar("text")), Any
        except BoundError as problem:
            text = f"{cls.__name__}.{name}: {problem}"
            problems.append(Problem(problem.code, text, problem.hint, place))
            field, annotation, given = Field(name=name, type=Scalar("text")), Any, msgspec.NODEFAULT
        except TypeError as problem:
            hint_text = f"a field may be {SUPPORTED}"
            problems.append(
                Problem("record.type", f"{cls.__name__}.{name}: {problem}", hint_text, place)
            )
            field, annotation = Field(name=name, type=Scalar("text")), Any
        fields.append(field)
        default = None if given is msgspec.NODEFAULT and field.optional else given
        members.append((name, annotation, default))
    schema = Schema(name=cls.__name__, fields=tuple(fields), key=key, time=time)
    problems += [
        Problem(code, f"{cls.__name__}: {message}", advice, place)
        for code, message, advice in _key_and_time_problems(schema)
    ]
    return _struct(cls, members, RecordType(cls, schema, place, tuple(problems)))


def _hints(cls: type, place: Place | None, problems: list[Problem]) -> dict[str, Any]:
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError) as error:
        message = f"{cls.__name__}: an annotation cannot be read: {error}"
        problems.append(
            Problem("record.annotation", message, "import or define the name it uses", place)
        )
        return {}
    if not hints:
        problems.append(
            Problem("record.empty", f"{cls.__name__} has no fields", "declare some", place)
        )
    return hints


def _struct(cls: type[T], members: list[tuple[str, Any, Any]], found: RecordType[T]) -> type[T]:
    skipped = {"__dict__", "__weakref__", "__annotations__", *(name for name, _, _ in members)}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in skipped}
    # msgspec wants fields with defaults last; keyword construction keeps the user's order anyway.
    struct = msgspec.defstruct(
        cls.__name__,
        [
            (name, kind) if default is msgspec.NODEFAULT else (name, kind, default)
            for name, kind, default in members
        ],
        namespace=namespace,
        module=cls.__module__,
        frozen=True,
        kw_only=_defaults_come_early(members),
    )
    object.__setattr__(found, "cls", struct)
    setattr(struct, RECORD_ATTRIBUTE, found)
    setattr(struct, SCHEMA_ATTRIBUTE, found.schema)
    return struct  # type: ignore[return-value]


def _defaults_come_early(members: list[tuple[str, Any, Any]]) -> bool:
    given = [default is not msgspec.NODEFAULT for _, _, default in members]
    return given != sorted(given)


def _key_and_time_problems(schema: Schema) -> list[tuple[str, str, str]]:
    found = []
    names = [field.name for field in schema.fields]
    for name in schema.key:
        field = schema.field(name)
        if field is None:
            text = f"the key {name!r} is not one of its fields"
            found.append(("record.key-unknown", text, did_you_mean(name, names)))
        elif field.nullable or not is_key_type(field.type):
            text = f"the key {name!r} is {str(field).partition(': ')[2]}"
            advice = "a key is a text, an int, a bool, a date, an instant or a choice; never null"
            found.append(("record.key-type", text, advice))
    if schema.time is not None:
        field = schema.field(schema.time)
        if field is None:
            text = f"the event time {schema.time!r} is not one of its fields"
            found.append(("record.time-unknown", text, did_you_mean(schema.time, names)))
        elif field.nullable or field.type not in (Scalar("instant"), Scalar("int")):
            text = f"the event time {schema.time!r} is {str(field).partition(': ')[2]}"
            advice = "use a datetime, or an int of milliseconds since the epoch; never null"
            found.append(("record.time-type", text, advice))
    return found


def is_key_type(kind: FieldType | None) -> bool:
    """Return whether values of a type can be a key, or part of one."""
    return isinstance(kind, Choice) or (isinstance(kind, Scalar) and kind.name in _KEY_SCALARS)
