"""What is declared so far under an application, and whether what is named is declared."""

from typing import Any, Literal, TypeVar

from penstock.core.graph.data import Data, Lake, OnLog, Stream, Table
from penstock.core.graph.parts import Part, Pipeline, Service
from penstock.core.options import Options
from penstock.core.place import did_you_mean
from penstock.core.records.record import RecordType, record_type
from penstock.core.records.schema import Schema
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rollup.panerecord import Shape, pane_record_type
from penstock.core.rollup.resolve import Rollup, read_rollup
from penstock.core.topic import TopicSpec
from penstock.errors import Place, Problem

__all__ = ["Declarations", "Engine"]

T = TypeVar("T")

Engine = Literal["spark", "services"]


class Declarations:
    """Data and parts in the order of their declaration, and everything that is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.data: list[Data] = []
        self.parts: list[Part] = []
        self.record_types: dict[str, RecordType[Any]] = {}

    def known(self, part: str, given: Any, place: Place | None) -> tuple[Any, ...]:
        """Return the declared streams, tables and lake tables; report everything else."""
        kept = []
        known = [declared.name for declared in self.data]
        for data in given if isinstance(given, tuple | list) else (given,):
            if isinstance(data, Stream | Table | Lake):
                kept.append(data)
                continue
            hint = f"pass the object, not its name: {data} = app.stream({data!r}, ...)"
            if data not in known:
                hint = did_you_mean(data, known)
            text = f"{part} names {data!r}, which is not a stream or a table"
            self.problems.append(Problem("part.not-data", text, hint, place))
        return tuple(kept)

    def is_one(self, part: str, given: Any, place: Place | None) -> bool:
        """Return whether something is one declared stream, table or lake; report if it is not."""
        if isinstance(given, tuple | list):
            text = f"{part} writes several, but can write only one stream or table"
            self.problems.append(Problem("part.not-data", text, "declare one part for each", place))
            return False
        return bool(self.known(part, given, place))

    def no_stream(self, given: Any, place: Place | None) -> Stream[Any]:
        """Report that something is not a stream, and return a stream in its place."""
        name = str(getattr(given, "name", given))
        streams = [data.name for data in self.data if isinstance(data, Stream)]
        text = f"{name!r} cannot be archived: it is not a stream"
        self.problems.append(Problem("archive.of", text, did_you_mean(name, streams), place))
        record: RecordType[Any] = RecordType(object, Schema(name=name, fields=()), place)
        return Stream(name=name, record=record, topic=TopicSpec(name=name), place=place)

    def fill(
        self, data: OnLog, given: type[T] | Aggregation, on: Engine, place: Place | None
    ) -> None:
        """Add the part that fills a stream or table with the panes of an aggregation."""
        if not isinstance(given, Aggregation):
            return
        name = f"{data.name}.windows"
        reads = self.known(name, given.stream, place)
        part: Part
        if on == "services":
            part = Service(
                name=name,
                function=None,
                reads=reads,
                writes=(data,),
                aggregation=given,
                place=place,
            )
        else:
            part = Pipeline(
                name=name,
                function=_no_function,
                reads=reads,
                writes=data,
                aggregation=given,
                place=place,
            )
        self.parts.append(part)

    def record_type(
        self,
        name: str,
        cls: type[T] | Aggregation,
        place: Place | None,
        *,
        shape: Shape = "stream",
    ) -> RecordType[T]:
        """Return the type of what is declared, of a class or of panes; say what is neither."""
        if isinstance(cls, Aggregation):
            rollup = read_rollup(cls)
            if isinstance(rollup, Rollup):
                return pane_record_type(name, rollup, shape)
            self.problems += rollup
            return RecordType(object, Schema(name=name, fields=()), place)  # type: ignore[arg-type]
        found = record_type(cls)
        if found is None:
            shown = getattr(cls, "__name__", repr(cls))
            text = f"{name}: {shown} is not a record type"
            hint = "write a class with fields, and @record(...) above it"
            given: Any = cls
            if isinstance(given, type) and given.__module__ != "builtins":
                hint = f"put @record(...) above class {shown}"
            self.problems.append(Problem("data.not-a-record", text, hint, place))
            return RecordType(cls, Schema(name=shown, fields=()), place)
        self.record_types[f"{found.place}{found.name}"] = found
        return found

    def named(
        self, kind: str, name: Any, function: Any, place: Place | None
    ) -> tuple[Options, str]:
        """Return what reads the options of a part, and its name: by default its function's."""
        shown = name if isinstance(name, str) else _called(function)
        options = self.options(kind, shown, place)
        return options, options.name(_called(function) if name is None else name)

    def options(self, kind: str, name: Any, place: Place | None) -> Options:
        """Return what reads the options of one declaration."""
        return Options(f"{kind} {name!r}", place, self.problems)


def _no_function(*_: Any) -> Any:
    raise TypeError("a windowed aggregation is declared, not called")


def _called(function: Any) -> str:
    """Return the name of a function, a class, or the class of an object."""
    return str(getattr(function, "__name__", type(function).__name__))
