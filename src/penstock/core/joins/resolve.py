"""From a declared join to its plan: expressions read, types settled, spans in microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

from penstock.core.derived.steps import SelectionStep, TextReader
from penstock.core.expression.tree import Field as FieldNode
from penstock.core.expression.tree import Member
from penstock.core.instants import MICROSECOND
from penstock.core.joins.answers import Answers
from penstock.core.joins.declared import DeclaredJoin
from penstock.core.joins.output import AT, WITHDRAWN, OutputPlan, ResultKey
from penstock.core.joins.plan import JoinPlan
from penstock.core.joins.planned import PlanSide, Spans
from penstock.core.joins.rekey import Rekeyed
from penstock.core.joins.sides import Pair, Side, read_sides
from penstock.core.joins.spans import span
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Inner, Input, Plan
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.schema import Field, Nested, Schema
from penstock.errors import Problem

__all__ = ["delay_of", "reads_of", "resolve"]

_HOW = ("inner", "left", "outer")


def reads_of(join: DeclaredJoin) -> tuple[Any, ...]:
    """Return what a join reads, each once: streams, tables, and operators with their results."""
    pair = read_sides(join)
    if not isinstance(pair, Pair):
        tables = [getattr(each, "table", each) for each in (join.left, join.right)]
        return tuple(getattr(each, "data", each) for each in tables)
    return tuple(each for each, _ in _read_by(pair))


def delay_of(join: DeclaredJoin) -> timedelta:
    """Return how far the event times of results may go back, where those of what is read do not.

    Of two streams one may be ahead: a pair has the time of its later row. A row without a partner
    is answered, or its result withdrawn, when event time is past it by its window and the lateness.
    A look-up answers records without a key at once, while others wait.
    """
    plan = resolve(join)
    if not isinstance(plan, JoinPlan):
        return timedelta()
    spans, held = plan.spans, 0
    if plan.kind == "streams":
        alone = {"inner": 0, "left": spans.after, "outer": max(spans.before, spans.after)}
        held = max(spans.before, spans.after, 0) + max(alone[plan.how], 0) + spans.lateness
    elif plan.kind == "lookup" and any(each.field.nullable for each in plan.output.key):
        held = spans.wait or 0
    return held * MICROSECOND


def _read_by(pair: Pair) -> list[tuple[Any, tuple[int, ...]]]:
    """Return each thing that is read, with the numbers of the sides that read it."""
    left, right = pair
    if pair.kind == "foreign":
        answers = Inner("answers", Answers.of(left, right))
        return [(left.data, (0,)), (answers, (1,))]
    if left.carried and right.carried and left.selected == right.selected and left.on == right.on:
        return [(_carrier(left), (0, 1))]
    if not left.carried and not right.carried and left.data is right.data:
        return [(left.data, (0, 1))]
    first = _carrier(left) if left.carried else left.data
    second = _carrier(right) if right.carried else right.data
    return [(first, (0,)), (second, (1,))]


def _carrier(side: Side) -> Inner:
    suffix = f"{side.name}_by_{'_'.join(side.on)}"
    return Inner(suffix, Rekeyed(selected=side.selected, by=side.on))


def resolve(join: DeclaredJoin) -> Plan | list[Problem]:
    """Return a join ready to run, or everything that is wrong with it."""
    pair = read_sides(join)
    spans, unreadable = _read_spans(join)
    if not isinstance(pair, Pair):
        return [*pair, *(Problem(*each, join.place) for each in unreadable)]
    found = [*unreadable, *_option_problems(join, pair, spans)]
    wrong = [Problem(*each, join.place) for each in found]
    if wrong:
        return wrong
    output = _output(join, pair)
    if not isinstance(output, OutputPlan):
        return output
    read_by = _read_by(pair)
    data = join.given or tuple(each for each, _ in read_by)
    inputs = tuple(
        _input(each, pair, sides) for each, (_, sides) in zip(data, read_by, strict=True)
    )
    feeds = {side: number for number, (_, sides) in enumerate(read_by) for side in sides}
    foreign = pair.kind == "foreign"
    sides = tuple(
        PlanSide(
            name=side.name,
            kind=side.kind,
            input=feeds[number],
            steps=() if side.carried or (foreign and number) else side.selection.steps,
            schema=side.schema,
            on=side.on,
            carried=side.carried,
            history=side.history,
        )
        for number, side in enumerate(pair)
    )
    return JoinPlan(
        kind=pair.kind,
        inputs=inputs,
        sides=(sides[0], sides[1]),
        how=join.how,
        spans=Spans(
            before=span(join.before) or 0,
            after=span(join.after) or 0,
            lateness=span(join.lateness) or 0,
            wait=span(join.wait),
        ),
        early=join.emits == "early",
        output=output,
    )


def _input(data: Any, pair: Pair, sides: tuple[int, ...]) -> Input:
    side: Side = (pair.left, pair.right)[sides[0]]
    if isinstance(data, Inner):  # only to see what the plan is; a host gives what it declared
        data = side.data
    found = input_of(data, kind="broadcast" if side.kind == "broadcast" else None)
    rule = WatermarkRule.of(side.data.event_time) if side.kind == "stream" else None
    return replace(found, rule=rule)


_Spans: TypeAlias = dict[str, int | None]
_Wrong: TypeAlias = list[tuple[str, str, str]]
"""Code, message and hint of each problem."""


def _read_spans(join: DeclaredJoin) -> tuple[_Spans, _Wrong]:
    spans: _Spans = {}
    wrong: _Wrong = []
    for word in ("before", "after", "lateness", "wait"):
        try:
            spans[word] = span(getattr(join, word))
        except ValueError as error:
            wrong.append(("join.span", f"{word}: {error}", f'{word}="10m", for example'))
            spans[word] = 0
    return spans, wrong


def _option_problems(join: DeclaredJoin, pair: Pair, spans: _Spans) -> _Wrong:
    wrong = list(_word_problems(join, pair))
    if (spans["lateness"] or 0) < 0 or (spans["wait"] or 0) < 0:
        text = "lateness and wait are not negative"
        wrong.append(("join.span", text, 'lateness="1m", for example'))
    within = spans["before"], spans["after"]
    if pair.kind == "streams":
        wrong += _within_problems(*within)
    elif within != (None, None) or spans["lateness"]:
        text = "within, before, after and lateness are for two streams"
        wrong.append(("join.within", text, "leave them out"))
    if spans["wait"] is not None:
        wrong += _wait_problems(pair)
    return wrong


def _word_problems(join: DeclaredJoin, pair: Pair) -> Iterator[tuple[str, str, str]]:
    if join.how not in _HOW:
        yield "join.how", f"there is no join {join.how!r}", "how is inner, left or outer"
    elif join.how == "outer" and pair.kind not in ("streams", "tables"):
        text = f"{pair.right.data.name!r} is looked up: its rows alone give no results"
        yield "join.how", text, "how is inner or left"
    if join.emits not in ("final", "early"):
        yield "join.results", f"there are no results {join.emits!r}", '"final" or "early"'


def _within_problems(before: int | None, after: int | None) -> Iterator[tuple[str, str, str]]:
    if before is None and after is None:
        text = "two streams are joined within a time: their rows cannot be kept for ever"
        yield "join.within", text, 'within="10m", or before="0s", after="10m"'
    elif (before or 0) + (after or 0) < 0:
        yield "join.within", "no time is between before and after", "before + after >= 0"


def _wait_problems(pair: Pair) -> Iterator[tuple[str, str, str]]:
    if pair.kind != "lookup":
        yield "join.wait", "wait is for a stream and a table", "leave it out"
    elif pair.right.history is None:
        text = f"records can wait for rows where table {pair.right.data.name!r} keeps versions"
        yield "join.wait", text, 'app.table(..., history="1d")'


def _output(join: DeclaredJoin, pair: Pair) -> OutputPlan | list[Problem]:
    left, right = pair
    key = tuple(_result_key(join, pair))
    fields = (
        *(each.field for each in key),
        _side_field(left, nullable=join.how == "outer"),
        _side_field(right, nullable=join.how != "inner"),
    )
    names = tuple(each.field.name for each in key)
    whole = not any(each.field.nullable for each in key)
    reader = TextReader(
        Schema(name="Joined", fields=fields, key=names if whole else ()), join.place
    )
    steps: list[SelectionStep] = []
    for declared in join.steps:
        before = reader.schema
        step = reader.step(declared)
        if step is None:
            continue
        steps.append(step)
        if step.fields and before.key:
            reader.schema = replace(reader.schema, key=_taken_key(step, before, key, fields))
    clash = {each.name for each in reader.schema.fields} & {AT, WITHDRAWN}
    if clash:
        name = min(clash)
        hint = f"select it under another name: the results have {name!r} by themselves"
        reader.wrong("select.name", f"a result cannot have a field {name!r} of its own", hint)
    if reader.problems:
        return reader.problems
    return OutputPlan(
        names=(left.name, right.name),
        key=key,
        steps=tuple(steps),
        schema=reader.schema,
        withdraws=pair.kind == "streams" and join.how != "inner",
    )


def _result_key(join: DeclaredJoin, pair: Pair) -> Iterator[ResultKey]:
    left, right = pair
    if pair.kind in ("broadcast", "foreign"):
        for name in left.schema.key:
            field = left.schema.field(name)
            if field is not None:
                yield ResultKey(Field(name=name, type=field.type), name, None)
        return
    for one, other in zip(left.fields(), right.fields(), strict=True):
        nullable = {
            "inner": False,
            "left": one.nullable,
            "outer": one.nullable or other.nullable,
        }[join.how]
        field = Field(name=one.name, type=one.type, nullable=nullable, optional=nullable)
        yield ResultKey(field, one.name, other.name)


def _side_field(side: Side, *, nullable: bool) -> Field:
    return Field(name=side.name, type=Nested(side.schema), nullable=nullable, optional=nullable)


def _taken_key(
    step: SelectionStep, before: Schema, key: tuple[ResultKey, ...], sides: tuple[Field, ...]
) -> tuple[str, ...]:
    """Return the names that the key has behind a step; none: it is not among the fields."""
    same: dict[str, str] = {name: name for name in before.key}
    always = {field.name for field in sides[len(key) :] if not field.nullable}
    left, right = sides[-2].name, sides[-1].name
    for each in key:
        if left in always:
            same[f"{left}.{each.left}"] = each.field.name
        if right in always and each.right is not None:
            same[f"{right}.{each.right}"] = each.field.name
    taken: dict[str, str] = {}
    for name, expression in step.fields:
        match expression.root:
            case FieldNode(path):
                pass
            case Member(FieldNode(side), field):
                path = f"{side}.{field}"
            case _:
                continue
        if path in same:
            taken.setdefault(same[path], name)
    return tuple(taken[name] for name in before.key) if set(before.key) <= set(taken) else ()
