"""An aggregate: a combiner over plain values, and what each engine needs to know of it.

The latter is its form, which decorates the class of the combiner::

    @Form(gives=same, nullable=True, spark="max({value})")
    @dataclass(frozen=True, slots=True)
    class Max: ...

Engines ask :func:`form_of`. It goes by the exact class: a subclass may compute something else, so
the form of its parent does not hold for it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from penstock.core.panes.combiner import Combiner
from penstock.core.records.schema import FieldType, ListOf, Scalar

__all__ = [
    "OWN",
    "Aggregate",
    "Form",
    "Reduction",
    "Takes",
    "finite",
    "form_of",
    "forms",
    "is_number",
    "list_of",
    "real_number",
    "same",
    "whole_number",
]

C = TypeVar("C", bound=type)

Takes: TypeAlias = Literal["comparable", "numbers", "floats", "presence"]
"""The values that it takes: any that can be compared, numbers as they are, numbers as floats, or
only whether there is a value (True, or null) of any type."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result of a window: a combiner over the values of an expression."""

    combiner: Combiner[Any, Any, Any]
    of: str | None = None
    """The expression; None: the record itself, which only a count can take."""
    gives: Any = None
    """The annotation of the result of a combiner that is not Penstock's own."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """How Arrow reduces a column group by group, and the accumulator that is made of the results.

    The accumulator must be what the combiner would hold after the same values.
    """

    functions: tuple[str, ...]
    """Names of Arrow's grouped aggregations."""
    make: Callable[..., Any]
    """Takes one result of each function, for one group, and returns the accumulator."""
    safe: Callable[[float, int], bool] | None = None
    """Whether Arrow cannot overflow, given the largest absolute value and how many values there
    are; None: it never does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What engines need to know of an aggregate beside its combiner, whose class it decorates."""

    gives: Callable[[FieldType], FieldType] | None
    """The type of its result, given that of its values; None: the declaration says it."""
    nullable: bool = False
    """Whether its result may be null."""
    takes: Takes = "comparable"
    stamped: bool = False
    """Whether it takes pairs of event time and value."""
    spark: str | Mapping[str, str] = field(default_factory=dict)
    """The same result in Spark's SQL over the columns ``{value}`` and ``{time}``: for all types of
    values, or for each that has one. Without it the pane machine computes the aggregate."""
    arrow: Mapping[str, Reduction] = field(default_factory=dict)
    """How whole columns are reduced, for each type of values; the others go one by one."""
    problems: Callable[[Any], Iterator[tuple[str, str]]] = lambda _combiner: iter(())
    """Yields what is wrong with its options, each with a hint."""
    examples: tuple[Mapping[str, Any], ...] = ({},)
    """Options that the tests of all aggregates try it with."""

    def __call__(self, combiner: C) -> C:
        """Declare that a combiner class has this form."""
        _FORMS[combiner] = self
        return combiner

    def spark_for(self, kind: FieldType) -> str | None:
        """Return its Spark SQL over values of a type."""
        if isinstance(self.spark, str):
            return self.spark
        return self.spark.get(kind.name) if isinstance(kind, Scalar) else None

    def arrow_for(self, kind: FieldType) -> Reduction | None:
        """Return how Arrow reduces a column of values of a type."""
        return self.arrow.get(kind.name) if isinstance(kind, Scalar) else None


_FORMS: dict[type, Form] = {}

OWN: Final = Form(gives=None)
"""The form of a user's own combiner."""


def form_of(combiner: object) -> Form:
    """Return the form of a combiner."""
    return _FORMS.get(type(combiner), OWN)


def forms() -> Mapping[type, Form]:
    """Return every combiner class that was declared, with its form."""
    return dict(_FORMS)


def same(kind: FieldType) -> FieldType:
    """Give the type of the values."""
    return kind


def list_of(kind: FieldType) -> FieldType:
    """Give a list of the values."""
    return ListOf(kind)


def whole_number(_kind: FieldType) -> FieldType:
    """Give an int."""
    return Scalar("int")


def real_number(_kind: FieldType) -> FieldType:
    """Give a float."""
    return Scalar("float")


def finite(sql: str) -> str:
    """Return Spark SQL that is null where a float is no finite number."""
    return f"case when abs({sql}) < double('infinity') then {sql} end"


def is_number(given: Any, kind: Any = int | float) -> bool:
    """Whether an option is a number, of which bool is none."""
    return isinstance(given, kind) and not isinstance(given, bool)
