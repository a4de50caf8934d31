"""The methods of `App` that declare parts: sources, sinks, pipelines, services."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args

from penstock.core.declare.arguments import (
    read_calls,
    read_changes,
    read_inputs,
    read_outputs,
    read_policy,
    read_trigger,
)
from penstock.core.declare.declarations import Declarations
from penstock.core.declare.questions import read_talk
from penstock.core.graph.data import Data, Feedback, OnLog, Stream, Table
from penstock.core.graph.parts import (
    Connector,
    Delivery,
    MicroBatch,
    Pipeline,
    RealTime,
    Service,
    Sink,
    SinkConnector,
    Source,
)
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.graph.questions import Questions
from penstock.core.graph.signature import method, read_definition
from penstock.core.graph.timeorder import InTimeOrder
from penstock.core.hints import did_you_mean
from penstock.core.operators.broadcast import Broadcast
from penstock.core.options import Options
from penstock.core.place import caller, place_of
from penstock.errors import Problem

__all__ = ["DeclaresParts"]

T = TypeVar("T")

OutputMode = Literal["append", "update", "complete"]


class DeclaresParts:
    """Declares sources, sinks, pipelines and services, with their options."""

    _declared: Declarations

    def source(
        self,
        name: str,
        connector: Connector,
        *,
        into: Stream[T] | Table[T],
        parse: Callable[[Any], Any] | None = None,
    ) -> Source:
        """Declare that a connector feeds a stream or a table.

        The connector says what a crash may do: a text file is read exactly once. An item that
        gives no valid record becomes a dead letter. Only one process feeds from a source at a
        time; a second one takes over.

        Args:
            name: The name of the source; its position belongs to it.
            connector: One of ``penstock.connectors``, or your own.
            into: The stream or table.
            parse: Makes a record of an item (of its text, if it is bytes), or None to skip it; or
                ``delete(table, key)``, which deletes a row of the table.
                Without it, bytes are a record as JSON, and anything else is a record.

        Examples:
            >>> from penstock.connectors import text_file
            >>> def parse(line: str) -> Reading:
            ...     device, celsius = line.split(",")
            ...     return Reading(device, datetime.now(UTC), float(celsius))
            >>> app.source("book", text_file("readings.csv"), into=readings, parse=parse).name
            'book'
        """
        place = caller()
        options = self._declared.options("source", name, place)
        name = options.name(name)
        self._declared.problems += _connector_problems(connector, options, 'text_file("lines.txt")')
        if parse is not None:
            options.function("parse", parse)
        source = Source(name=name, connector=connector, into=into, parse=parse, place=place)
        if self._declared.is_one(name, into, place):
            self._declared.parts.append(source)
        return source

    def sink(self, name: str, connector: SinkConnector, *, reads: OnLog) -> Sink:
        """Declare that a stream or a table is written to an outside system.

        The connector says where to, and what a crash may do: ``json_files`` writes exactly once. A
        record that cannot be decoded, or that the system refuses, becomes a dead letter. Of a table
        a sink writes rows and deletions; of a stream of results also those that are taken back.

        Args:
            name: The name of the sink, its identity: its progress belongs to it.
            connector: One of ``penstock.connectors``, or your own.
            reads: The stream or the table.

        Examples:
            >>> from penstock.connectors import json_files
            >>> app.sink("export", json_files("out", every="1m"), reads=alarms).name
            'export'
        """
        place = caller()
        options = self._declared.options("sink", name, place)
        name = options.name(name)
        self._declared.problems += _connector_problems(connector, options, 'json_files("out")')
        sink = Sink(name=name, connector=connector, reads=reads, place=place)
        data: Any = reads
        if isinstance(data, Stream | Table):
            self._declared.parts.append(sink)
        else:
            shown = getattr(data, "name", data)
            text = f"{name} reads {shown!r}, which is not a stream or a table"
            known = [each.name for each in self._declared.data if isinstance(each, Stream | Table)]
            hint = did_you_mean(shown, known)
            self._declared.problems.append(Problem("part.not-data", text, hint, place))
        return sink

    def pipeline(
        self,
        *,
        reads: Data | tuple[Data, ...],
        writes: Data,
        name: str | None = None,
        trigger: MicroBatch | RealTime | None = None,
        output: OutputMode | None = None,
    ) -> Callable[[Callable[..., Any]], Pipeline]:
        """Declare a pipeline: a function from DataFrames to a DataFrame, run by Spark.

        Use it as a decorator. The function is called once, to build the plan, and starts nothing.
        Beside a stream, tables and lake tables are looked up, as they are at each batch. A row
        that its output does not accept stops the pipeline.

        Args:
            reads: What the function gets a frame of, in this order.
            writes: The stream, table or lake table that takes the rows.
            name: The name of the pipeline, its identity; by default that of the function.
            trigger: ``micro_batch()``, exactly once (default), or ``real_time()``, at least once.
            output: Spark's output mode; ``"update"`` into tables, else ``"append"``, by default.

        Examples:
            >>> @app.pipeline(reads=readings, writes=copies)
            ... def only_hot(readings):
            ...     return readings.where("celsius > 60")
            >>> only_hot.name
            'only_hot'
        """

        def decorate(function: Callable[..., Any]) -> Pipeline:
            place = place_of(function) or caller()
            options, called = self._declared.named("pipeline", name, function, place)
            options.function("what it computes", function)
            usual = "update" if isinstance(writes, Table) else "append"
            mode = usual if output is None else output
            pipeline = Pipeline(
                name=called,
                function=function,
                reads=self._declared.known(called, reads, place),
                writes=writes,
                trigger=read_trigger(trigger, options),
                output=options.word("output", mode, get_args(OutputMode), "append"),
                place=place,
            )
            if self._declared.is_one(called, writes, place):
                self._declared.parts.append(pipeline)
            return pipeline

        return decorate

    def service(
        self,
        *,
        reads: OnLog | InTimeOrder | tuple[OnLog | Broadcast, ...] = (),
        writes: OnLog | Feedback | tuple[OnLog | Feedback, ...] = (),
        asks: Questions[Any, Any] | tuple[Questions[Any, Any], ...] = (),
        answers: Questions[Any, Any] | tuple[Questions[Any, Any], ...] = (),
        name: str | None = None,
        delivery: Delivery = "exactly_once",
        errors: ErrorPolicy | None = None,
        concurrency: int | None = None,
        timeout: str | timedelta | None = None,
    ) -> Callable[[Any], Service]:
        """Declare a service: a function, or a class, that handles one record at a time.

        A decorator. The function returns one record, yields several, or returns None; each goes to
        the stream of its type. Parameters annotated ``State[...]``, ``Context`` or ``Timers`` get
        these. A class has ``process``, and may have ``open``, ``on_timer`` and ``close``. Outputs,
        state, timers and offsets are committed together, or not at all.

        Args:
            reads: One stream or table, or several in a tuple; ``broadcast(table)`` among them. Or
                ``by_event_time(...)`` of several.
            writes: What it may write, one or several; empty: nothing.
            asks: Questions that it asks; it gets their answers.
            answers: Questions that it answers; it gets them.
            name: The name of the service, its identity; by default that of the function.
            delivery: ``"exactly_once"``, ``"at_least_once"`` or ``"at_most_once"``.
            errors: What happens to a record that fails; by default it becomes a dead letter.
            concurrency: How many calls of one partition may overlap; only if it is async (64).
            timeout: How long one call may take; only if it is async (30 s).

        Examples:
            >>> @app.service(reads=readings, writes=alarms)
            ... def warn(reading: Reading, hottest: State[float]) -> Alarm | None:
            ...     if reading.celsius > hottest.get(60.0):
            ...         hottest.set(reading.celsius)
            ...         return Alarm(reading.device, f"{reading.celsius} °C")
        """
        return lambda function: self._add_service(
            function,
            name=name,
            reads=reads,
            writes=writes,
            talk=(asks, answers),
            delivery=delivery,
            errors=errors,
            calls=(concurrency, timeout),
        )

    def _add_service(
        self,
        function: Any,
        *,
        name: str | None,
        reads: Any,
        writes: Any,
        talk: tuple[Any, Any],
        delivery: Delivery,
        errors: ErrorPolicy | None,
        calls: tuple[int | None, str | timedelta | None],
    ) -> Service:
        place = place_of(method(function)) or caller()
        options, called = self._declared.named("service", name, function, place)
        outputs = read_outputs(writes, options)
        inputs = read_inputs(reads, options)
        definition = read_definition(function)
        concurrency, timeout = read_calls(function, *calls, options)
        talks = read_talk(*talk, options)
        known = self._declared.known(called, (*inputs.plain, *talks.reads), place)
        changes = read_changes(known, definition.process.changes)
        service = Service(
            name=called,
            function=function,
            reads=known,
            writes=self._declared.known(called, (*outputs.plain, *talks.writes), place),
            asks=talks.asks,
            answers=talks.answers,
            broadcasts=self._declared.known(called, inputs.whole, place),
            reads_by_time=inputs.waits,
            rows=definition.rows,
            changes=tuple(changes),
            feedback=(*outputs.feedback, *talks.feedback),
            rounds=outputs.rounds,
            delivery=delivery,
            errors=read_policy(errors, options),
            concurrency=concurrency,
            timeout=timeout,
            states=(*definition.states, *changes.values()),
            context=definition.process.context or talks.context,
            timed=definition.on_timer is not None or bool(talks.asks),
            place=place,
        )
        self._declared.parts.append(service)
        return service


def _connector_problems(given: Any, options: Options, example: str) -> tuple[Problem, ...]:
    """Return what a connector says is wrong with its options; what is none is told."""
    if isinstance(given, type):
        text = f"{given.__name__} is a class, and a connector is an object"
        options.wrong("connector", text, f"call it: {given.__name__}(...)")
        return ()
    if not callable(getattr(given, "describe", None)):
        hint = f"penstock.connectors has them: {example}, for example"
        options.wrong("connector", f"{given!r} is not a connector: no describe()", hint)
    return tuple(getattr(given, "problems", ()))
