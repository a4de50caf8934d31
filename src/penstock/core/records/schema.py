"""The schema of a record type as a plain value: comparable, printable, stored beside its topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

__all__ = [
    "Choice",
    "Field",
    "FieldType",
    "Limits",
    "ListOf",
    "MapOf",
    "Nested",
    "Scalar",
    "ScalarName",
    "Schema",
    "limits",
    "type_from_json",
]

ScalarName = Literal["bool", "int", "float", "text", "bytes", "instant", "date", "decimal"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value. ``int`` has 64 bits, ``instant`` a zone, ``decimal`` 38 digits, 18 behind."""

    name: ScalarName

    def __str__(self) -> str:
        """Return the word for people."""
        return self.name


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some texts."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        """Return the choices for people."""
        return "one of " + ", ".join(self.values)


@dataclass(frozen=True, slots=True)
class ListOf:
    """Any number of values of one type."""

    item: FieldType

    def __str__(self) -> str:
        """Return the words for people."""
        return f"list of {self.item}"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Texts to values of one type."""

    value: FieldType

    def __str__(self) -> str:
        """Return the words for people."""
        return f"map of {self.value}"


@dataclass(frozen=True, slots=True)
class Nested:
    """A record inside a record."""

    schema: Schema

    def __str__(self) -> str:
        """Return the inner record's name."""
        return self.schema.name


FieldType: TypeAlias = Scalar | Choice | ListOf | MapOf | Nested


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a value may be, beyond its type. Numbers use the first four, texts the rest."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    def __str__(self) -> str:
        """Return the limits as ``ge=0 le=100``."""
        return " ".join(f"{name}={value!r}" for name, value in self.to_json().items())

    def to_json(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return {
            name: value for name in self.__slots__ if (value := getattr(self, name)) is not None
        }


def limits(
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
) -> Limits:
    r"""Bound the values of a field, in its annotation.

    A record outside its limits becomes a dead letter, on every engine; one that a service or
    pipeline writes is refused. ``pattern`` is searched for in the text. It may contain what
    ``rlike`` may in an expression, takes time that grows with the text and no faster, and means the
    same everywhere: ``\w`` and ``\d`` are ASCII.

    Examples:
        >>> from typing import Annotated
        >>> @record(key="device")
        ... class Bounded:
        ...     device: Annotated[str, limits(min_length=1, pattern="^[a-z]+$")]
        ...     celsius: Annotated[float, limits(ge=-273.15)]
    """
    return Limits(
        ge=ge, gt=gt, le=le, lt=lt, min_length=min_length, max_length=max_length, pattern=pattern
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. If an optional field is absent, it has its default, or is null."""

    name: str
    type: FieldType
    nullable: bool = False
    optional: bool = False
    default: Any = None
    limits: Limits | None = None

    def __str__(self) -> str:
        """Return the field for people."""
        words = f"{self.name}: {self.type}"
        if self.nullable:
            words += " or null"
        if self.optional and self.default is not None:
            words += f" = {self.default!r}"
        return f"{words} ({self.limits})" if self.limits else words

    def holds(self, scalar: ScalarName) -> bool:
        """Return whether it contains a value of this type, at any depth."""
        return _holds(self.type, scalar)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The fields of a record type, with its key fields and its event-time field."""

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    time: str | None = None

    def field(self, name: str) -> Field | None:
        """Return the field of this name, or None."""
        return next((field for field in self.fields if field.name == name), None)

    def holds(self, scalar: ScalarName) -> bool:
        """Whether a value of this type is anywhere in such records."""
        return any(field.holds(scalar) for field in self.fields)

    def patterns(self, *, listed: bool = False) -> list[str]:
        """Return the patterns of all limits in such records; or of those in lists and maps."""
        own = [] if listed else [field.limits.pattern for field in self.fields if field.limits]
        inner = [each for field in self.fields for each in _patterns(field.type, listed=listed)]
        return [pattern for pattern in own if pattern is not None] + inner

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain JSON values, for the registry."""
        return {
            "name": self.name,
            "fields": [_field_to_json(field) for field in self.fields],
            "key": list(self.key),
            "time": self.time,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Schema:
        """Return the schema that ``to_json`` wrote."""
        return cls(
            name=value["name"],
            fields=tuple(_field_from_json(field) for field in value["fields"]),
            key=tuple(value["key"]),
            time=value["time"],
        )


def _holds(kind: FieldType, scalar: ScalarName) -> bool:
    match kind:
        case ListOf(inner) | MapOf(inner):
            return _holds(inner, scalar)
        case Nested(schema):
            return schema.holds(scalar)
    return kind == Scalar(scalar)


def _patterns(kind: FieldType, *, listed: bool) -> list[str]:
    match kind:
        case ListOf(inner) | MapOf(inner):
            return _patterns(inner, listed=False)
        case Nested(schema):
            return schema.patterns(listed=listed)
    return []


def _field_to_json(field: Field) -> dict[str, Any]:
    value: dict[str, Any] = {"name": field.name, "type": _type_to_json(field.type)}
    if field.nullable:
        value["nullable"] = True
    if field.optional:
        value["default"] = field.default
    if field.limits:
        value["limits"] = field.limits.to_json()
    return value


def _field_from_json(value: dict[str, Any]) -> Field:
    return Field(
        name=value["name"],
        type=type_from_json(value["type"]),
        nullable=value.get("nullable", False),
        optional="default" in value,
        default=value.get("default"),
        limits=Limits(**value["limits"]) if "limits" in value else None,
    )


def _type_to_json(type_: FieldType) -> Any:
    match type_:
        case Scalar(name):
            return name
        case Choice(values):
            return {"choice": list(values)}
        case ListOf(item):
            return {"list": _type_to_json(item)}
        case MapOf(value):
            return {"map": _type_to_json(value)}
        case Nested(schema):
            return {"record": schema.to_json()}


def type_from_json(value: Any) -> FieldType:
    """Return the type that stands in a schema's JSON; ValueError where there is none."""
    match value:
        case str() if value in get_args(ScalarName):
            return Scalar(value)  # type: ignore[arg-type]
        case {"choice": values}:
            return Choice(tuple(values))
        case {"list": item}:
            return ListOf(type_from_json(item))
        case {"map": item}:
            return MapOf(type_from_json(item))
        case {"record": schema}:
            return Nested(Schema.from_json(schema))
    raise ValueError(f"no such type in a schema: {value!r}")
