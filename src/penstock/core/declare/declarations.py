"""What is declared so far under an application, and whether what is named is declared."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, TypeVar

from penstock.core.graph.data import Data, Lake, OnLog, Stream, Table
from penstock.core.graph.parts import FILLING, Part, Pipeline, Service
from penstock.core.hints import declare_first, did_you_mean, label
from penstock.core.operators.operator import Inner, Operator, is_operator
from penstock.core.options import Options
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType, record_type
from penstock.core.records.schema import Schema
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rollup.panerecord import Shape, pane_record_type
from penstock.core.rollup.resolve import Rollup, read_rollup
from penstock.core.topic import Partitioning, TopicSpec
from penstock.core.units import LONGEST_SPAN
from penstock.errors import Place, Problem

__all__ = ["Declarations", "Engine", "inherited_event_time"]

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
                hint = declare_first(data) or did_you_mean(data, known)
            text = f"{part} names {label(data)}, which is not a stream or a table"
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

    def settled(self, name: str, given: Any, *, on: Engine, partitions: int, place: Any) -> Any:
        """Return an operator that reads declared data alone: what is inside of it is declared.

        Anything else is returned as it is.
        """
        if not is_operator(given):
            return given
        inner = [read for read in given.reads if isinstance(read, Inner)]
        if not inner:
            return given
        others = (read for read in given.reads if isinstance(read, Stream | Table))
        same = next((read.topic.partitions for read in others), partitions)
        return given.reading(
            [
                self._inner(name, read, on=on, partitions=same, place=place)
                if isinstance(read, Inner)
                else read
                for read in given.reads
            ]
        )

    def fill(
        self, data: OnLog, given: Any, on: Engine, place: Place | None, *, live: bool = False
    ) -> None:
        """Add the part that fills a stream or table with what an operator or windows give."""
        part: Part
        if isinstance(given, Aggregation):
            name = f"{data.name}.windows"
            reads = self.known(name, given.stream, place)
            computes: dict[str, Any] = {"aggregation": given}
        elif is_operator(given):
            name = f"{data.name}.{FILLING}"
            plan = given.plan()
            if isinstance(plan, list):
                return  # said already
            kinds = [each.kind for each in plan.inputs]
            everything = self.known(name, given.reads, place)
            if len(everything) != len(kinds):
                return
            broadcast = [
                each for each, kind in zip(everything, kinds, strict=True) if kind == "broadcast"
            ]
            reads = tuple(
                each for each, kind in zip(everything, kinds, strict=True) if kind != "broadcast"
            )
            computes = {"operator": given, "plan": plan}
            if on == "services":
                computes["broadcasts"] = _each_once(broadcast)
            else:
                reads = everything
        else:
            return
        if on == "services":
            part = Service(
                name=name,
                function=None,
                reads=_each_once(reads),
                writes=(data,),
                live=live,
                place=place,
                **computes,
            )
        else:
            part = Pipeline(
                name=name,
                function=_no_function,
                reads=_each_once(reads),
                writes=data,
                place=place,
                **computes,
            )
        self.parts.append(part)

    def _inner(
        self, outer: str, inner: Inner, *, on: Engine, partitions: int, place: Place | None
    ) -> OnLog:
        """Declare an operator inside of another one: the topic of its results, and its part."""
        name = f"{outer}.{inner.suffix}"
        operator = self.settled(name, inner.operator, on=on, partitions=partitions, place=place)
        record = self.record_type(name, operator, place, shape=inner.shape)
        data: OnLog
        if inner.shape == "table":
            topic = TopicSpec(name=name, partitions=partitions, retention=None, compacted=True)
            data = Table(name=name, record=record, topic=topic, place=place)
        else:
            by: Partitioning = "key" if record.schema.key else "round_robin"
            topic = TopicSpec(name=name, partitions=partitions, partitioning=by)
            data = Stream(
                name=name,
                record=record,
                topic=topic,
                event_time=inherited_event_time(operator, record) or EventTime(),
                sources=_sources(operator, record) if on == "services" else (),
                place=place,
            )
        self.data.append(data)
        self.fill(data, operator, on, place)
        return data

    def record_type(
        self,
        name: str,
        cls: type[T] | Aggregation | Operator,
        place: Place | None,
        *,
        shape: Shape = "stream",
    ) -> RecordType[T]:
        """Return the type of what is declared, of a class or of results; say what is neither."""
        given: Any = cls
        if is_operator(given):
            plan = given.plan()
            if not isinstance(plan, list):
                result: RecordType[T] = plan.result(name, shape)
                return result
            self.problems += [
                problem if problem.place else replace(problem, place=place) for problem in plan
            ]
            return RecordType(object, Schema(name=name, fields=()), place)  # type: ignore[arg-type]
        if isinstance(cls, Aggregation):
            rollup = read_rollup(cls)
            if isinstance(rollup, Rollup):
                return pane_record_type(name, rollup, shape)
            self.problems += rollup
            return RecordType(object, Schema(name=name, fields=()), place)  # type: ignore[arg-type]
        found: RecordType[T] | None = record_type(given)
        if found is None:
            shown = getattr(cls, "__name__", repr(cls))
            text = f"{name}: {shown} is not a record type"
            hint = "write a class with fields, and @record(...) above it"
            if isinstance(given, type) and given.__module__ != "builtins":
                hint = f"put @record(...) above class {shown}"
            self.problems.append(Problem("data.not-a-record", text, hint, place))
            return RecordType(given, Schema(name=shown, fields=()), place)
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


def inherited_event_time(given: Any, record: RecordType[Any]) -> EventTime | None:
    """Return how the watermark follows what an operator gives: as it follows what that reads.

    Of several streams it is the first's rule, with the most disorder of all, and with how far
    the operator lets times go back. None: it is no operator, or its results have no event time.
    """
    if not is_operator(given) or record.schema.time is None:
        return None
    rules = [read.event_time for read in given.reads if isinstance(read, Stream)]
    if not rules:
        return None
    disorders = [rule.disorder for rule in rules if rule.disorder is not None]
    disorder = max(disorders, default=timedelta()) + getattr(given, "delay", timedelta())
    first = rules[0]
    return EventTime(
        # Spans that are allowed alone may be too long together.
        disorder=min(disorder, LONGEST_SPAN) or None,
        idle_after=first.idle_after,
        closes_after=first.closes_after,
        ahead=first.ahead,
        follows=first.follows,
    )


def _sources(operator: Any, record: RecordType[Any]) -> tuple[str, ...]:
    """Return whose event times the records of a repartitioned stream carry."""
    if not is_operator(operator) or record.schema.time is None:
        return ()
    streams = [read for read in operator.reads if isinstance(read, Stream)]
    if len(operator.reads) != 1 or not streams or streams[0].record.schema.time is None:
        return ()
    return tuple(str(number) for number in range(streams[0].topic.partitions))


def _each_once(found: Iterable[Any]) -> tuple[Any, ...]:
    """Return what is read twice, by a join with itself, once."""
    kept: list[Any] = []
    for each in found:
        if each not in kept:
            kept.append(each)
    return tuple(kept)


def _no_function(*_: Any) -> Any:
    raise TypeError("a windowed aggregation is declared, not called")


def _called(function: Any) -> str:
    """Return the name of a function, a class, or the class of an object."""
    return str(getattr(function, "__name__", type(function).__name__))
