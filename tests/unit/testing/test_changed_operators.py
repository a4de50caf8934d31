"""Operators and actors whose declaration changes between two runs: what their state is worth then."""

import msgspec
import pytest

from penstock import App, record
from penstock.core.rules.check import verified
from penstock.errors import ConfigurationError
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.testing.clock import START_AT, ManualClock
from penstock.testing.engine import MemoryEngine
from penstock.testing.memorylog import MemoryLog

MINUTE = 60_000


def event(**others):
    """Return a record type with a key, a time, a number, and other fields."""
    space = {"__annotations__": {"key": str, "at": int, "n": int, **others}}
    return record(key="key", time="at")(type("Event", (), space))


def streams(app, kind=None):
    kinds = {"left": kind or event(), "right": event()}
    return [app.stream(name, each, partitions=1) for name, each in kinds.items()]


def join(app, kind=None, *, only="inner", **options):
    left, right = streams(app, kind)
    joined = left.join(right, on="key", how=only, **{"within": "10m", **options})
    return joined.select(key="key", a="left.n", b="right.n")


def followed(app, *, then="n > 5", **options):
    left, _ = streams(app)
    begun = pattern(by="key", within="10m", **options).first("a", left, where="n = 1")
    return begun.then("b", left, where=then).select(a="a.n", b="b.n")


def life(app, *, states=("new", "open", "shut"), span="5m"):
    left, _ = streams(app)
    found = lifecycle(*states).on(left, f"{states[0]} -> open", where="n = 1")
    found = found.after(span, f"open -> {states[0]}").rests(*(set(states) - {"open"}))
    return found.on(left, "open -> shut", where="n = 9") if "shut" in states else found


class Runs:
    """One log, and an application that is another one in each of its runs."""

    def __init__(self):
        self.clock, self.log = ManualClock(START_AT), None

    def run(self, declare, *came):
        """Run with a declaration; return the numbers in the results that it gives of what came."""
        app = App("demo")
        app.stream("out", declare(app), on="services", partitions=1)
        return self.run_app(app, *came)

    def run_app(self, app, *came):
        graph = verified(app.graph)
        self.log = self.log or MemoryLog(graph.topics(), clock=self.clock)
        for topic, minute, number in came:
            value = msgspec.json.encode({"key": "k", "at": minute * MINUTE, "n": number})
            self.log.append(topic, key=b"k", value=value, partition=0)
        before = len(self.log.read(("out", 0)))
        engine = MemoryEngine(graph, self.log, clock=self.clock, auto_commit=True)
        engine.restart()
        engine.flow()
        engine.stop(None)
        found = [msgspec.json.decode(raw.value()) for raw in self.log.read(("out", 0))[before:]]
        return [
            [value for name, value in row.items() if name not in ("key", "at")] for row in found
        ]


@pytest.mark.parametrize(
    ("first", "then", "named"),
    [
        (join, lambda app: join(app, within="1m"), "within: was 10m before, 10m after"),
        (join, lambda app: join(app, only="left"), "join: was inner streams, is left streams"),
        (followed, lambda app: followed(app, then="n > 6"), "steps: was first a of left where"),
        (followed, lambda app: followed(app, lateness="1m"), "lateness: was 0s, is 1m"),
        (life, lambda app: life(app, states=("first", "open")), "begins: was new, is first"),
    ],
)
def test_state_of_another_declaration_is_refused_before_anything_is_handled(first, then, named):
    runs = Runs()
    runs.run(first, ("left", 1, 1))
    with pytest.raises(ConfigurationError, match="was changed") as refused:
        runs.run(then, ("right", 2, 7))
    assert refused.value.code == "operator.changed"
    assert named in str(refused.value)
    assert len(runs.log.read(("out", 0))) == (1 if first is life else 0)
    runs.run(first, ("right", 2, 7))  # the old one goes on as if nothing had been


@pytest.mark.parametrize("kind", [event(more=int), event(n=str)], ids=["grown", "retyped"])
def test_kept_records_that_do_not_fit_their_type_any_more_stop_the_part_with_the_reason(kind):
    runs = Runs()
    runs.run(join, ("left", 1, 1))
    with pytest.raises(ConfigurationError, match=r"what the join keeps does not fit") as refused:
        runs.run(lambda app: join(app, kind), ("right", 2, 7))
    assert refused.value.code == "state.unreadable"


def test_lateness_may_change_and_matches_that_are_begun_go_on():
    runs = Runs()
    assert runs.run(join, ("left", 1, 1)) == []
    assert runs.run(lambda app: join(app, lateness="5m"), ("right", 2, 7)) == [[1, 7]]
    begun = Runs()
    assert begun.run(followed, ("left", 1, 1)) == []
    came = ("left", 2, 7), ("left", 3, 0)
    assert begun.run(lambda app: followed(app, most_begun=1), *came) == [[1, 7]]


def test_a_key_whose_state_is_declared_no_more_begins_again_and_a_new_time_out_counts():
    runs = Runs()
    runs.run(life, ("left", 1, 1), ("left", 2, 9))
    again = lambda app: life(app, states=("new", "open"), span="1m")  # noqa: E731
    assert [row[:3] for row in runs.run(again, ("left", 3, 1), ("left", 20, 0))] == [
        ["open", "new", "left"],
        ["new", "open", "time-out"],
    ]


def counting(**fields):
    """Return an application with an actor of these fields, which counts in the first of them."""
    app = App("demo")
    kind = event()
    left, out = app.stream("left", kind, partitions=1), app.stream("out", kind, partitions=1)
    name = next(iter(fields))

    def receive(self, message):
        setattr(self, name, type(fields[name])(getattr(self, name)) + message.n)
        return kind(message.key, message.at, int(getattr(self, name)))

    receive.__annotations__ = {"message": kind, "return": kind}
    types = {each: type(value) for each, value in fields.items()}
    space = {"__annotations__": types, "receive": receive, **fields}
    app.actor(reads=left, writes=out)(type("Counter", (), space))
    return app


def test_fields_of_an_actor_come_and_go_and_one_that_is_renamed_begins_again():
    runs = Runs()
    assert runs.run_app(counting(n=0), ("left", 1, 1)) == [[1]]
    assert runs.run_app(counting(n=0, more=5), ("left", 2, 2)) == [[3]]
    assert runs.run_app(counting(n=0.0), ("left", 3, 3)) == [[6]]
    assert runs.run_app(counting(m=0), ("left", 4, 4)) == [[4]]


def test_a_field_of_an_actor_of_another_type_is_refused_with_its_name():
    runs = Runs()
    runs.run_app(counting(n=0), ("left", 1, 1))
    with pytest.raises(ConfigurationError, match=r"the state 'self' cannot be restored") as refused:
        runs.run_app(counting(n=b""), ("left", 2, 2))
    assert refused.value.code == "state.unreadable"
