"""The machine finds what a plain recount finds: on random patterns, streams, cuts and restarts."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patternrecount import Recount, S, skipped

from penstock import App, EventTime, record
from penstock.core.instants import micros
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore
from penstock.core.patterns.plan import PatternPlan
from penstock.patterns import pattern, sequence

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CONTIGUITY = st.sampled_from(["strict", "relaxed", "any"])


@record(key="key", time="at")
class Event:
    key: str
    at: datetime
    letter: str
    number: int
    place: int


def declared(
    steps, *, within=None, gap=False, skip=None, lateness="0s", mode="final", disorder="0s"
):
    stream = App("random").stream("events", Event, event_time=EventTime(disorder=disorder))
    made = pattern(
        by="key",
        within=None if within is None else within * SECOND,
        within_of="gap" if gap else "match",
        lateness=lateness,
    )
    for number, step in enumerate(steps):
        name, where = f"s{number}", _where(step, f"s{number}")
        if step.absent:
            never = made.not_next if step.after == "strict" else made.never
            made = never(name, stream, where=where)
            continue
        add = {"strict": made.next, "relaxed": made.then, "any": made.any}[step.after]
        made = add(
            name,
            stream,
            where=where,
            times=(step.least, step.most),
            between=step.between,
            optional=step.optional,
            greedy=step.greedy,
            until=" or ".join(f"letter = '{each}'" for each in step.until) or None,
        )
    if skip:
        mode_, step = skip
        made = made.after_match(mode_, None if step is None else f"s{step}")
    plan = made.results(mode).plan()
    assert isinstance(plan, PatternPlan), plan
    return plan


def _where(step, name):
    text = f"letter in ({', '.join(repr(each) for each in step.letters)})"
    return (
        text
        if step.sum_below is None
        else f"{text} and sum({name}.number) + number < {step.sum_below}"
    )


@st.composite
def steps_of(draw):
    """A flat pattern that may be declared."""
    count = draw(st.integers(1, 4))
    letters = st.sampled_from(["a", "b", "c", "ab", "bc", "abc"])
    steps = []
    for number in range(count):
        absent = number > 0 and draw(st.integers(0, 4)) == 0
        if absent:
            steps.append(
                S(draw(letters), draw(st.sampled_from(["strict", "relaxed"])), absent=True)
            )
            continue
        least, most = draw(st.sampled_from([(1, 1), (1, 1), (1, None), (2, 2), (1, 3), (2, None)]))
        repeated = (least, most) != (1, 1)
        optional = draw(st.integers(0, 3)) == 0
        steps.append(
            S(
                draw(letters),
                draw(CONTIGUITY),
                least,
                most,
                draw(CONTIGUITY) if repeated else "relaxed",
                optional,
                repeated and draw(st.integers(0, 3)) == 0,
                draw(st.sampled_from(["", "", "", "b", "c"])) if repeated else "",
                sum_below=draw(st.sampled_from([None, None, None, 3])),
            )
        )
    return steps


def events_of(least=0):
    one = st.tuples(st.integers(0, 2), st.sampled_from("abcd"), st.integers(0, 2))
    return st.lists(one, min_size=least, max_size=6).map(_in_order)


def _in_order(gaps):
    time, found = 0, []
    for gap, letter, number in gaps:
        time += gap
        found.append((time, letter, number))
    return found


def arrivals(events, order=None):
    for place in order if order is not None else range(len(events)):
        time, letter, number = events[place]
        at = EPOCH + time * SECOND
        yield Arrival(0, b"k", Event("k", at, letter, number, place), micros(at), "0", place)


def run(plan, came, cuts, *, finish=True):
    """Run a plan over arrivals that are cut where ``cuts`` says, with a restart at some cuts."""
    made, store = plan.result("found", "stream"), MemoryStore()
    machine = plan.machine(store, made, broadcasts={})
    results, late = [], []

    def take(given):
        results.extend(given.results)
        late.extend(each.arrival.record.place for each in given.late)
        assert not given.refused

    moment = []
    for number, arrival in enumerate(came):
        moment.append(arrival)
        cut = cuts[number % len(cuts)] if cuts else 1
        if cut:
            take(machine.take(moment, clock=0))
            moment = []
        if cut == 2:
            machine.flush()
            machine = plan.machine(store, made, broadcasts={})
        elif cut == 3:
            machine.flush()
            machine.trim(0)
    take(machine.take(moment, clock=0))
    if finish:
        take(machine.finish())
    assert not machine.pending
    return results, late


def counted(plan, results):
    """Results as the recount gives them; what is withdrawn is taken away."""
    total = Counter()
    for result in results:
        path = []
        for taker in plan.takers:
            if not taker.absent:
                found = getattr(result.record, taker.name)
                listed = found if isinstance(found, list) else [found] if found else []
                path += [(each.place, taker.number) for each in listed]
        known = (micros(result.record.at) - micros(EPOCH)) / 1_000_000
        total[tuple(sorted(path)), known] += 1 if result.change == "add" else -1
    assert all(count >= 0 for count in total.values())
    return +total


def expected(steps, events, *, within, gap=False, skip=None):
    found = Recount(steps, events, within=within, gap=gap).matches()
    if skip:
        found = skipped(found, *skip)
    return Counter((path, float(known)) for path, known in found)


CUTS = st.lists(st.integers(0, 3), max_size=4)


def needs_within(steps):
    last = max(n for n, each in enumerate(steps) if not each.absent)
    return any(each.after == "relaxed" for each in steps[last + 1 :])


def has_positive_start(steps):
    return not steps[0].absent


@given(steps_of(), events_of(), st.sampled_from([None, 2, 3, 5]), st.booleans(), CUTS)
def test_every_match_is_found_and_no_other(steps, events, within, gap, cuts):
    within = within or (4 if gap or needs_within(steps) else None)
    plan = declared(steps, within=within, gap=gap)
    results, _ = run(plan, arrivals(events), cuts)
    assert counted(plan, results) == expected(steps, events, within=within, gap=gap)


@given(
    steps_of(),
    events_of(),
    st.sampled_from(["to-next", "past-last", "to-first", "to-last"]),
    st.integers(1, 5),
    CUTS,
)
def test_a_match_discards_what_the_declaration_says(steps, events, mode, within, cuts):
    step = max(n for n, each in enumerate(steps) if not each.absent)
    skip = (mode, step if mode.startswith("to-") and mode != "to-next" else None)
    plan = declared(steps, within=within, skip=skip)
    results, _ = run(plan, arrivals(events), cuts)
    assert counted(plan, results) == expected(steps, events, within=within, skip=skip)


WAYS = ({"mode": "early", "lateness": "20s"}, {"lateness": "20s"}, {"disorder": "20s"})


@given(steps_of(), st.tuples(events_of(3), st.permutations(range(6))), st.integers(1, 5), CUTS)
@pytest.mark.parametrize("mode", WAYS)
def test_records_out_of_order_give_the_same_in_the_end(mode, steps, came, within, cuts):
    events, order = came
    order = [place for place in order if place < len(events)]
    plan = declared(steps, within=within, **mode)
    results, late = run(plan, arrivals(events, order), cuts)
    assert not late
    # Records of one time are in the order in which they came.
    rank = sorted(order, key=lambda place: events[place][0])
    found = Recount(steps, [events[place] for place in rank], within=within).matches()
    back = Counter(
        (tuple((rank[at], step) for at, step in path), float(known)) for path, known in found
    )
    assert Counter({(tuple(sorted(p)), k): c for (p, k), c in back.items()}) == counted(
        plan, results
    )


LETTERS = st.sampled_from(["a", "b", "ab", "bc", "abc"])


@given(
    st.lists(st.tuples(LETTERS, CONTIGUITY), min_size=1, max_size=2),
    st.tuples(CONTIGUITY, CONTIGUITY, st.integers(1, 3), st.sampled_from([None, 3])),
    events_of(2),
    CUTS,
)
def test_a_repeated_sequence_is_its_steps_written_out(inner, options, events, cuts):
    after, between, times, within = options

    def chained(made, steps, number):
        for letters, how in steps:
            add = {"strict": made.next, "relaxed": made.then, "any": made.any}[how]
            made = add(f"s{number}", stream, where=_where(S(letters), ""))
            number += 1
        return made

    def matched(plan):
        results, _ = run(plan, arrivals(events), cuts)
        found = Counter()
        for (path, known), count in counted(plan, results).items():
            found[tuple(sorted(place for place, _ in path)), known] += count
        return found

    stream = App("random").stream("events", Event)
    span = None if within is None else within * SECOND
    begun = pattern(by="key", within=span).first("begin", stream, where="letter = 'a'")
    add = {"strict": begun.next, "relaxed": begun.then, "any": begun.any}[after]
    grouped = add(chained(sequence(), inner, 0), times=times, between=between)
    written = []
    for turn in range(times):
        (letters, _), *rest = inner
        written += [(letters, after if turn == 0 else between), *rest]
    assert matched(grouped.plan()) == matched(chained(begun, written, 0).plan())
