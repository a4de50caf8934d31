"""Parts of a random application that are declared as values, or are objects for each key.

Each function adds one part to the application that it is given. All but the join go by one stream,
or by what does not depend on how several mix; what comes in no certain order is said to do so.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from penstock import Timer, Timers, feedback, record, send
from penstock.aggregates import count, maximum, total
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.windows import fixed

if TYPE_CHECKING:
    from randomapp import Sign, Told  # noqa: TC004 - whoever runs this file gives them


def add_actor(made: Any, label: str) -> None:
    """An object for each key, whose fields grow and are set back, with timers."""
    out, application = made.stream(label), made

    class Keeper:
        made: ClassVar[Any] = application
        seen: int = 0
        last: list[int] = []  # noqa: RUF012 - a field
        by_number: dict[str, int] = {}  # noqa: RUF012 - a field

        def receive(self, sign: Sign, timers: Timers) -> Told:
            self.seen += 1
            self.last = [*self.last[-3:], sign.number]
            self.by_number[f"{sign.number % 4}"] = sign.number
            timers.set("quiet", after="12s")
            self.made.probe.hit("call")
            if sign.number == 17:
                raise ValueError("unlucky")
            return Told(sign.key, f"{self.seen} {self.last} {sorted(self.by_number.items())}")

        def on_timer(self, timer: Timer) -> Told:
            told = Told(timer.key, f"quiet at {timer.due_at}: {self.seen} {self.last}")
            if self.seen % 3 == 0:  # an actor that knows nothing takes no room
                self.seen, self.last, self.by_number = 0, [], {}
            return told

    made.app.actor(
        reads=made.inputs["left"], writes=out, name=label, idle_after="20s", errors=made.errors()
    )(Keeper)


def add_life(made: Any, label: str) -> None:
    """A life cycle over one stream, with time-outs."""
    left = made.inputs["left"]
    life = (
        lifecycle("well", "odd", "bad")
        .on(left, "well -> odd", where="number % 5 = 1")
        .on(left, "odd -> bad", where="number % 3 = 0")
        .on(left, "bad -> well", where="number % 4 = 0")
        .stays(left, "odd", where="number % 2 = 0")
        .after("20s", "odd -> well")
        .rests("well", "bad")
        .entering("bad", command="concat('mend ', key)")
    )
    made.declare("stream", label, life)


def add_pattern(made: Any, label: str) -> None:
    """What follows what in one stream, and what does not follow."""
    left = made.inputs["left"]
    rising = (
        pattern(by="key", within="40s")
        .first("low", left, where="number < 16")
        .then("high", left, where="number > low.number")
        .never("thirteen", left, where="number = 13")
        .select(key="low.key", low="low.number", high="high.number")
    )
    made.declare("stream", label, rising)


def add_join(made: Any, label: str) -> None:
    """Two streams: which results stand does not depend on how they mix, but their order does."""
    left, right = made.inputs["left"], made.inputs["right"]
    joined = left.join(
        right, on="key", how="left", before="10s", after="10s", lateness="10s", names=("a", "b")
    ).select(key="key", first="a.number", second="b.number")
    made.declare("stream", label, joined)
    made.unordered.add(label)


def add_groups(made: Any, label: str) -> None:
    """An aggregation of the rows of a table: what is written in the end is certain, not the way."""
    grouped = made.rows.group(by="value").aggregate(rows=count(), least=maximum("key"))
    made.declare("table", label, grouped)
    made.latest.add(label)


def add_circle(made: Any, label: str) -> None:
    """Records that go round, in a stream of their own, until there is nothing left of them."""
    out, probe = made.stream(label), made.probe
    name = f"{made.app.graph.app}.{label}_round"

    @record(key="key")
    class Turn:
        key: str
        left: int

    turns = made.app.stream(name, Turn, partitions=made.plan.partitions)

    def begin(sign: Sign) -> Turn | None:
        return Turn(f"{sign.key}{sign.at}", sign.number % 5) if sign.number % 2 else None

    def turn(turn: Turn) -> Any:
        probe.hit("call")
        yield send(out, Told(turn.key, f"{turn.left}"))
        if turn.left:
            yield send(turns, Turn(turn.key, turn.left - 1))

    made.app.service(reads=made.inputs["right"], writes=turns, name=f"{label}_begin")(begin)
    made.app.service(reads=turns, writes=(out, feedback(turns)), name=label)(turn)
    made.unordered.add(label)


def add_moved(made: Any, label: str) -> None:
    """Records of one stream under other keys, which come together from several partitions."""
    made.declare("stream", label, made.inputs["left"].repartition(by="number"))
    made.unordered.add(label)


def add_windows(made: Any, label: str) -> None:
    """Windows over one stream."""
    windows = made.inputs["right"].window(fixed("20s"), by="key")
    made.declare("stream", label, windows.aggregate(n=count(), total=total("number")))


def add_once(made: Any, label: str) -> None:
    """Each number of a key once within a span, of one stream."""
    made.declare("stream", label, made.inputs["left"].deduplicate(by="number", within="30s"))


def add_picked(made: Any, label: str) -> None:
    """Some records of one stream, as others."""
    picked = made.inputs["right"].where("number % 3 <> 1")
    made.declare("stream", label, picked.select(key="key", at="at", text="cast(number as string)"))


KINDS = {
    "windows": add_windows,
    "once": add_once,
    "picked": add_picked,
    "actor": add_actor,
    "life": add_life,
    "rising": add_pattern,
    "joined": add_join,
    "groups": add_groups,
    "circle": add_circle,
    "moved": add_moved,
}
