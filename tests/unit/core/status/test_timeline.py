"""What happened, told from one look to the next."""

from datetime import UTC, datetime

from penstock.core.status.report import Counts
from penstock.core.status.status import PartStatus, RunStatus
from penstock.core.status.timeline import KEPT, Timeline

AT = datetime(2026, 1, 1, tzinfo=UTC)


def part(state="running", **given):
    return PartStatus(
        process="count", part="count", kind="service", state=state, since_seconds=1.0, **given
    )


def looked(*looks, seconds=1.0):
    timeline = Timeline()
    for number, each in enumerate(looks):
        run = RunStatus(app="plant", command="dev", pid=7, started_at=AT, parts=(each,))
        timeline.take(number * seconds, [run], {each.key: each})
    return [(each.kind, each.text) for each in timeline.after()]


def test_a_death_and_the_return_are_told_once_each():
    died = {"restarts": 1, "reason": "killed by SIGKILL"}
    assert looked(
        part("starting"),
        part(),
        part(),
        part("restarting", **died),
        part("restarting", **died),
        part("starting", restarts=1),
        part(restarts=1),
    ) == [
        ("run", "penstock dev of plant runs, process 7"),
        ("well", "runs"),
        ("died", "died: killed by SIGKILL"),
        ("well", "runs"),
    ]


def test_what_is_not_well_is_told_with_its_reason_and_again_with_another_one():
    told = looked(part(), part("degraded", reason="slow"), part("degraded", reason="stuck"))
    assert told[2:] == [("unwell", "degraded: slow"), ("unwell", "degraded: stuck")]


def test_dead_letters_are_told_now_and_then_and_none_is_left_out():
    letters = [part(counts=Counts(received=n, dead_lettered=n)) for n in (0, 2, 3, 9)]
    told = looked(*letters, seconds=20.0)
    assert told[2:] == [
        ("letters", "2 dead letters, 2 in all"),
        ("letters", "7 dead letters, 9 in all"),
    ]


def test_partitions_that_move_are_told():
    told = looked(part(detail={"partitions": "0, 1"}), part(detail={"partitions": "1"}))
    assert told[2:] == [("moved", "now has partitions 1")]


def test_only_the_latest_is_kept_and_one_goes_on_after_a_number():
    timeline = Timeline()
    for number in range(KEPT + 5):
        timeline.tell(float(number), "broker")
    assert len(timeline.after()) == KEPT
    assert [each.number for each in timeline.after(KEPT + 3)] == [KEPT + 4, KEPT + 5]
