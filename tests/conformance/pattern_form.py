"""A pattern case as an application of Penstock, and what comes out of it as the form says it.

A case's events become records with their fields, their number, an event time (one unit of time is a
second) and a key. Steps are called ``step0``, ``step1``...: names of cases may be any text.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from penstock import App, EventTime, record
from penstock.core.graph.data import Stream
from penstock.core.patterns.pattern import Pattern
from penstock.core.patterns.steps import Chain
from penstock.patterns import pattern, sequence

__all__ = ["Case", "Outcome", "PatternCase", "differences", "unsayable"]

Case = dict[str, Any]

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
UNIT = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)
"""An event at the watermark is late in the form, and is not in Penstock: it is this much later."""
DISORDER = timedelta(days=1000)
"""So much that events never move the watermark themselves, where the case says that watermarks do."""
NUMBER, AT, KEY = "case_number", "case_at", "case_key"
FUNCTIONS = "sum|first|last|count|min|max|avg"
KEYWORDS = {
    *("and", "or", "not", "is", "null", "true", "false", "like", "in", "between"),
    *("case", "when", "then", "else", "end", "cast", "as", "div"),
}


@dataclass
class Outcome:
    """What an engine gave for one case."""

    matches: list[list[int]] = field(default_factory=list)
    timeouts: list[tuple[list[int], float]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Codes of dead letters."""


def unsayable(case: Case) -> str | None:
    """Return why a case cannot be declared in Penstock's words, which is an error; None: it can."""
    for step in _all_steps(case["steps"]):
        repeated = [word for word in ("times", "optional", "greedy", "until") if word in step]
        if step.get("not") and repeated:
            return f"{step['name']}: what must not come has no {', '.join(repeated)}"
    return None


class PatternCase:
    """One case: its records, its pattern, and what is to happen in which order."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.watermarks_only = case.get("time") == "watermark"
        self._names = {name: f"step{n}" for n, name in enumerate(_step_names(case["steps"]))}
        self._key = case.get("key")
        self.record = self._record()

    def declare(self, app: App, prefix: str = "", **options: Any) -> tuple[Stream[Any], Pattern]:
        """Declare the stream of the events, and return it with the pattern that reads it."""
        time = EventTime(disorder=DISORDER if self.watermarks_only else None)
        events = app.stream(
            f"{prefix}events", self.record, partitions=1, event_time=time, **options
        )
        case = self.case
        within = case.get("within")
        made = pattern(
            by=KEY,
            within=None if within is None else within * UNIT,
            within_of=case.get("within_of", "match"),
        )
        made = self._chain(made, case["steps"], events)
        if (skip := case.get("skip", "none")) != "none":
            step = self._names.get(case.get("skip_step"))
            made = made.after_match(skip, step, must=case.get("skip_must", False))
        return events, made.with_timeouts() if "timeouts" in case else made

    def records(self) -> list[Any]:
        """Return the records of the events."""
        return [
            self._made(number, at, given) for number, (at, given) in enumerate(self.case["events"])
        ]

    def told(self, moment: Any) -> datetime:
        """Return the event time that records would have to show for it to come to this moment."""
        return moment + DISORDER if self.watermarks_only else moment

    def moments(self) -> Iterator[tuple[str, Any]]:
        """Yield what happens: ``("event", number)``, and ``("time", instant)`` event time comes to."""
        events, told = self.case["events"], self.case.get("watermarks", [])
        newest = None
        for number in range(-1, len(events)):
            if number >= 0:
                yield "event", number
            for _, watermark in (each for each in told if each[0] == number):
                if newest is None or watermark > newest:  # event time does not go back
                    newest = watermark
                    yield "time", EPOCH + watermark * UNIT + INSTANT
        if self.case.get("end"):
            yield "end", None
        elif not self.watermarks_only and events:
            yield "time", EPOCH + events[-1][0] * UNIT + INSTANT

    def read(self, results: list[dict[str, Any]], outcome: Outcome) -> None:
        """Put results, as plain JSON values, into an outcome."""
        for result in results:
            numbers = sorted(
                each[NUMBER] for name in self._names.values() for each in _listed(result.get(name))
            )
            if result.get("timed_out"):
                at = msgspec.convert(result["at"], datetime)
                outcome.timeouts.append((numbers, (at - EPOCH) / UNIT))
            else:
                outcome.matches.append(numbers)

    def _record(self) -> Any:
        kinds: dict[str, Any] = dict.fromkeys(self._asked(), float)
        given = [fields for _, fields in self.case["events"]]
        for name in dict.fromkeys(name for fields in given for name in fields):
            kinds[name] = _kind([fields[name] for fields in given if fields.get(name) is not None])
        annotations: dict[str, Any] = {KEY: str, AT: datetime, NUMBER: int}
        annotations |= {name: kind | None for name, kind in kinds.items()}
        made = type("CaseEvent", (), {"__annotations__": annotations, "__module__": __name__})
        return record(key=KEY, time=AT)(made)

    def _made(self, number: int, at: float, given: dict[str, Any]) -> Any:
        key = "" if self._key is None else str(given.get(self._key))
        known = {KEY: key, AT: EPOCH + at * UNIT, NUMBER: number}
        return msgspec.convert(known | given, self.record)

    def _asked(self) -> set[str]:
        """Return the names in conditions that are fields: of no event, perhaps."""
        found: set[str] = set()
        for text in _conditions(self.case["steps"]):
            plain = re.sub(r"'[^']*'", "''", self._renamed(text))
            plain = re.sub(rf"\b({FUNCTIONS})\(\s*step\d+(\.\w+)?\s*\)", "0", plain)
            found |= set(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*[(.])", plain))
        return {name for name in found if name.lower() not in KEYWORDS}

    def _renamed(self, text: str) -> str:
        for name in sorted(self._names, key=len, reverse=True):
            find = rf"\b({FUNCTIONS})\(\s*`?{re.escape(name)}`?(?=[.)\s])"
            text = re.sub(find, lambda m, to=self._names[name]: f"{m[1]}({to}", text)
        return text

    def _chain(self, chain: Any, steps: list[Case], events: Stream[Any]) -> Any:
        for number, step in enumerate(steps):
            after = step.get("after", "relaxed")
            if step.get("not"):
                add = chain.not_next if after == "strict" else chain.never
                where = step.get("where")
                named = self._names[step["name"]]
                chain = add(named, events, where=None if where is None else self._renamed(where))
                continue
            add = {"strict": chain.next, "relaxed": chain.then, "any": chain.any}[after]
            chain = (chain.first if number == 0 and "after" not in step else add)(
                *self._what(step, events), **self._options(step)
            )
        return chain

    def _what(self, step: Case, events: Stream[Any]) -> tuple[Any, ...]:
        if "group" in step:
            inner: Chain = self._chain(sequence(), step["group"], events)
            return (inner,)
        return (self._names[step["name"]], events)

    def _options(self, step: Case) -> dict[str, Any]:
        known = ("name", "group", "after", "not", "where", "until", "times")
        options = {name: value for name, value in step.items() if name not in known}
        for name in ("where", "until"):
            if name in step:
                options[name] = self._renamed(step[name])
        if "times" in step:
            options["times"] = tuple(step["times"])
        if step.get("times", [1, 1]) == [1, 1] and not step.get("optional"):
            options.pop("greedy", None)  # it changes nothing
        return options


def differences(case: Case, got: Outcome) -> list[str]:
    """Return what differs from what the case expects."""
    if case.get("error"):
        return [] if got.errors else ["no error, but one was expected"]
    alike = _alike(case["events"])

    def shown(numbers: list[int]) -> tuple[int, ...]:
        return tuple(sorted(alike[number] for number in numbers))

    wrong = []
    pairs: list[tuple[str, Counter[Any], Counter[Any]]] = [
        (
            "matches",
            Counter(map(shown, case.get("matches", []))),
            Counter(map(shown, got.matches)),
        ),
        ("late", Counter(case.get("late", [])), Counter(got.late)),
        ("errors", Counter(), Counter(got.errors)),
    ]
    if "timeouts" in case:
        expected = Counter((shown(numbers), float(at)) for numbers, at in case["timeouts"])
        found = Counter((shown(numbers), float(at)) for numbers, at in got.timeouts)
        pairs.append(("time-outs", expected, found))
    for what, expected, found in pairs:
        if expected != found:
            lines = (
                f"{what}: expected {_text(expected)}",
                f"{' ' * len(what)}  got      {_text(found)}",
            )
            wrong.append("\n      ".join(lines))
    return wrong


def _text(counted: Counter[Any]) -> str:
    return str(sorted(counted.elements()))


def _alike(events: list[list[Any]]) -> list[int]:
    return [events.index(event) for event in events]


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _step_names(steps: list[Case]) -> Iterator[str]:
    return (step["name"] for step in _all_steps(steps))


def _all_steps(steps: list[Case]) -> Iterator[Case]:
    for step in steps:
        if "group" in step:
            yield from _all_steps(step["group"])
        else:
            yield step


def _conditions(steps: list[Case]) -> Iterator[str]:
    for step in steps:
        yield from (step[name] for name in ("where", "until") if name in step)
        yield from _conditions(step.get("group", []))


def _kind(values: list[Any]) -> Any:
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return int if kinds else float
    if kinds <= {int, float}:
        return float
    return kinds.pop() if len(kinds) == 1 else str
