"""From a declared pattern to its plan: streams to inputs, texts to typed expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.core.expression import Expression, examine
from penstock.core.expression.taken import StepRecords
from penstock.core.expression.tree import Taken, walk
from penstock.core.instants import MICROSECOND
from penstock.core.operators.operator import Input
from penstock.core.options import UnreadableSpan, span_of
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.patterns.declared import DeclaredPattern, steps_of
from penstock.core.patterns.plan import PatternPlan
from penstock.core.patterns.planned import AnyPart, Body, Skipping, Taker, takers_of
from penstock.core.patterns.shape import least_and_most, shape_problems
from penstock.core.patterns.steps import Element, Group, Step
from penstock.core.patterns.words import words_of
from penstock.core.records.record import is_key_type
from penstock.core.records.schema import Field, Scalar, Schema
from penstock.errors import Problem

__all__ = ["read_pattern"]

_BOOL = Scalar("bool")


def read_pattern(given: DeclaredPattern) -> PatternPlan | list[Problem]:
    """Return the pattern ready to run, or everything that is wrong with it."""
    if misshapen := shape_problems(given):
        return misshapen
    return _Reader(given).plan()


class _Reader:
    """Reads the pieces one after the other, and keeps what is wrong with each."""

    def __init__(self, given: DeclaredPattern) -> None:
        self._given = given
        self._streams = given.reads
        self._problems: list[Problem] = []
        self._tests: list[tuple[int, Expression | None]] = []
        self._taken: list[Taken] = []
        self._count = 0
        self._scopes = {
            step.name: StepRecords(step.stream.record.schema, several=True)
            for step in steps_of(given.elements)
            if not step.absent
        }

    def plan(self) -> PatternPlan | list[Problem]:
        given = self._given
        by = self._by()
        within = None if given.within is None else self._span("within", given.within)
        lateness = self._span("lateness", given.lateness)
        self._settle_scopes(given.elements, several=False)
        parts = self._parts(given.elements, several=False, may_lack=False)
        plan = PatternPlan(
            inputs=tuple(self._input(stream) for stream in self._streams),
            by=by,
            parts=parts,
            tests=tuple(self._tests),
            taken=tuple(self._taken),
            within=within,
            gap=given.within_of == "gap",
            lateness=lateness,
            early=given.mode == "early",
            timeouts=given.timeouts,
            most_begun=given.most_begun,
            skipping=self._skipping(parts),
        )
        fields = self._fields(plan)
        if within is not None and within < 1:
            self._wrong("pattern.option", f"within: {given.within!r} is no time", 'within="10m"')
        if self._problems:
            return self._problems
        return replace(plan, fields=fields, words=words_of(given))

    def _input(self, stream: Any) -> Input:
        schema = stream.record.schema
        if schema.time is None and schema.fields:
            text = f"stream {stream.name!r} has no event time"
            self._wrong("pattern.no-time", text, f'@record(time="...") above class {schema.name}')
        return Input(
            name=stream.name,
            topic=stream.topic.name,
            kind="stream",
            record=stream.record,
            max_record_bytes=stream.topic.max_record_bytes,
            rule=WatermarkRule.of(stream.event_time),
        )

    def _by(self) -> tuple[Field, ...]:
        found: list[Field] = []
        for name in self._given.by:
            fields = [(each, each.record.schema.field(name)) for each in self._streams]
            for stream, field in fields:
                if field is None:
                    text = f"by {name!r}, which stream {stream.name!r} has not"
                    self._wrong("pattern.by", text, "derive a stream that has it, with .select")
                elif field.nullable or not is_key_type(field.type):
                    text = f"by {name!r}, which is {str(field).partition(': ')[2]}"
                    hint = "a text, an int, a bool, a date, an instant or a choice; never null"
                    self._wrong("pattern.by", f"{text} in stream {stream.name!r}", hint)
            types = {str(field.type) for _, field in fields if field is not None}
            if len(types) > 1:
                text = f"by {name!r}, which is {' and '.join(sorted(types))}"
                self._wrong("pattern.by", text, "streams have it in one type; cast it with .select")
            found += [field for _, field in fields[:1] if field is not None]
        for stream in self._streams:
            self._home(stream)
        return tuple(found)

    def _home(self, stream: Any) -> None:
        """Say where records of one group may be in several partitions."""
        key, topic = stream.record.schema.key, stream.topic
        at_home = topic.partitioning == "key" and key and set(self._given.by).issuperset(key)
        if topic.partitions > 1 and not at_home:
            keyed = f"keyed by {', '.join(key)}" if key else "not keyed"
            text = f"a pattern needs each group in one partition, but {stream.name!r} is {keyed}"
            by = ", ".join(map(repr, self._given.by))
            hint = f"{stream.name}.repartition(by=...) gives a stream that is keyed by {by}"
            hint = hint if by else "partitions=1, or by=..."
            self._wrong("pattern.home", text, hint)

    def _span(self, option: str, given: Any) -> int:
        found = span_of(given)
        if isinstance(found, UnreadableSpan):
            self._wrong("pattern.option", f"{option}: {found.problem}", 'write "90s" or "10m"')
            return 1
        if found // MICROSECOND < 0:
            self._wrong("pattern.option", f"{option}: {given!r} is negative")
        return found // MICROSECOND

    def _settle_scopes(self, elements: tuple[Element, ...], *, several: bool) -> None:
        """Note which steps may take several records, so that expressions can say so."""
        for each in elements:
            many = several or least_and_most(each.times) not in ((1, 1), (0, 1))
            if isinstance(each, Group):
                self._settle_scopes(each.sequence.elements, several=many)
            elif not each.absent:
                self._scopes[each.name] = replace(self._scopes[each.name], several=many)

    def _parts(
        self, elements: tuple[Element, ...], *, several: bool, may_lack: bool
    ) -> tuple[AnyPart, ...]:
        return tuple(
            self._group(each, several=several, may_lack=may_lack)
            if isinstance(each, Group)
            else self._step(each, several=several, may_lack=may_lack)
            for each in elements
        )

    def _group(self, group: Group, *, several: bool, may_lack: bool) -> Body:
        shared = _shared(group)
        several = several or shared["most"] != 1
        may_lack = may_lack or shared["optional"]
        inner = group.sequence.elements
        first = next((step for step in steps_of(inner) if not step.absent), None)
        until = None if first is None else self._until(group.until, first)
        parts = self._parts(inner, several=several, may_lack=may_lack)
        return Body(**shared, until=until, parts=parts)

    def _step(self, step: Step, *, several: bool, may_lack: bool) -> Taker:
        shared = _shared(step)
        number, self._count = self._count, self._count + 1
        return Taker(
            **shared,
            name=step.name,
            number=number,
            test=self._test(step, step.where),
            until=self._until(step.until, step),
            greedy=step.greedy,
            absent=step.absent,
            several=several or shared["most"] != 1,
            may_lack=may_lack or shared["optional"] or step.absent,
        )

    def _until(self, text: str | None, step: Step) -> int | None:
        return None if text is None else self._test(step, text)

    def _test(self, step: Step, text: str | None) -> int:
        """Return the number of a condition on the records of a stream; equal ones share it."""
        number = self._streams.index(step.stream)
        condition: Expression | None = None
        if text is not None:
            condition = self._expression(text, step.stream.record.schema, self._scopes, _BOOL)
            for node in _taken_in(condition):
                if node not in self._taken:
                    self._taken.append(node)
        if (test := (number, condition)) not in self._tests:
            self._tests.append(test)
        return self._tests.index(test)

    def _skipping(self, parts: tuple[AnyPart, ...]) -> Skipping | None:
        given = self._given
        if given.skip == "none":
            return None
        numbers = {taker.name: taker.number for taker in takers_of(parts)}
        step = None if given.skip_step is None else numbers[given.skip_step]
        return Skipping(given.skip, step, given.skip_must)

    def _fields(self, plan: PatternPlan) -> tuple[tuple[str, Expression], ...] | None:
        if self._given.fields is None:
            return None
        scopes = {
            taker.name: replace(
                self._scopes[taker.name],
                may_lack=taker.may_lack or (plan.timeouts and taker.number > 0),
            )
            for taker in plan.takers
            if not taker.absent
        }
        nothing = Schema(name="a match", fields=())
        found = []
        for name, text in self._given.fields:
            expression = self._expression(text, nothing, scopes)
            if expression is None:
                continue
            if expression.field_type is None:
                self._wrong("select.type", f"{name}: {text!r} is always null")
            elif name in self._given.by and expression.nullable:
                null = f"{name}: {text!r} is the key of the result, and may be null"
                self._wrong("pattern.by", null, "take it from a step that is never left out")
            found.append((name, expression))
        return tuple(found)

    def _expression(
        self,
        text: Any,
        schema: Schema,
        steps: Mapping[str, StepRecords],
        expect: Scalar | None = None,
    ) -> Expression | None:
        if not isinstance(text, str):
            self._wrong("expression.text", f"{text!r} is not an expression", '"order.amount"')
            return None
        found = examine(text, schema, expect=expect, steps=steps)
        if isinstance(found, Expression):
            return found
        self._problems += [fault.problem(text, self._given.place) for fault in found]
        return None

    def _wrong(self, code: str, message: str, hint: str = "") -> None:
        self._problems.append(Problem(code, message, hint, self._given.place))


def _shared(element: Element) -> dict[str, Any]:
    least, most = least_and_most(element.times) or (1, 1)
    return {
        "after": element.after,
        "least": max(least, 1),
        "most": most,
        "between": element.between,
        "optional": element.optional or least == 0,
    }


def _taken_in(expression: Expression | None) -> list[Taken]:
    if expression is None:
        return []
    return [node for node in walk(expression.root) if isinstance(node, Taken)]
