"""What an operator is told: what is wrong, since when, why, what is lost, what to do."""

from datetime import UTC, datetime

import pytest

from penstock.cli.console.look import Look, keyed, look_document, measured
from penstock.cli.console.troubles import Away
from penstock.core.status.history import EVERY_SECONDS, History, Series
from penstock.core.status.report import Counts
from penstock.core.status.status import PartStatus, RunStatus

AT = datetime(2026, 1, 1, tzinfo=UTC)


def part(name, state="running", since_seconds=90.0, **given):
    return PartStatus(
        process=name, part=name, kind="service", state=state, since_seconds=since_seconds, **given
    )


def document(*parts, history=None, **given):
    run = RunStatus(app="plant", command="dev", pid=7, started_at=AT, parts=parts)
    look = Look(61.0, [run], keyed([run], several=False), **given)
    return look_document(look, history or History())


def test_what_is_well_is_said_in_one_sentence():
    found = document(part("count"), part("split"))
    assert (found["well"], found["mood"], found["troubles"]) == (True, "good", [])
    assert found["summary"] == "all 2 parts are well"
    assert document()["summary"] == "nothing runs"


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"state": "restarting", "reason": "killed by SIGKILL"}, "it starts again by itself"),
        ({"state": "starting", "restarts": 1, "reason": "again"}, "it starts again by itself"),
        ({"state": "failed", "reason": "no table"}, "its log says why"),
        ({"state": "degraded", "detail": {"retrying": "0"}}, "a record fails again and again"),
        (
            {"state": "degraded", "reason": "it has not reported for 61s"},
            "its process may be stuck",
        ),
        ({"state": "starting", "since_seconds": 61.0}, "it takes long to start"),
        ({"state": "degraded", "reason": "slow"}, "the reason says what it lacks"),
    ],
)
def test_what_is_not_well_is_told_since_when_why_and_with_what_to_do(given, advice):
    found = document(part("count", **given), part("split"))
    (trouble,) = found["troubles"]
    assert (found["well"], found["mood"]) == (False, "bad")
    assert trouble["key"] == "count"
    assert trouble["since_seconds"] == given.get("since_seconds", 90.0)
    assert trouble["do"].startswith(advice)
    assert found["summary"] == "1 of 2 parts is not well"


def test_what_starts_for_the_first_time_is_no_trouble_and_not_well_either():
    found = document(part("count", state="starting", since_seconds=3.0), part("split"))
    assert (found["well"], found["mood"], found["troubles"]) == (False, "idle", [])
    assert found["summary"] == "1 of 2 parts is starting"


def test_a_run_that_does_not_answer_comes_first():
    found = document(part("count", state="failed"), silent=["plant (run, process 9) is silent"])
    assert [each["state"] for each in found["troubles"]] == ["silent", "failed"]


def test_a_lag_that_grows_is_told_before_anything_is_unwell_and_one_that_falls_has_an_end():
    history = History()
    for number in range(13):
        lags = {
            Series("count", "lag"): 1000.0 + 60 * number,
            Series("split", "lag"): 900.0 - 60 * number,
        }
        history.take(number * EVERY_SECONDS, lags)
    found = document(part("count", lag=1720, rate_in=5.0), part("split", lag=180), history=history)
    (trouble,) = found["troubles"]
    assert (found["well"], trouble["state"]) == (True, "behind")
    assert trouble["why"] == "its lag is 1,720 and growing by 12/s"
    assert found["worst_lag"]["key"] == "count"
    assert found["parts"][1]["trend"]["text"] == "empty in about 15s"


def test_the_lag_of_now_counts_and_one_that_is_not_known_goes_nowhere():
    history = History()
    for number in range(3):
        history.take(number * EVERY_SECONDS, {Series("count", "lag"): 50.0 - 20 * number})
    now = document(part("count", lag=3000), history=history)["parts"][0]["trend"]
    assert now["going"] == "growing"
    unknown = document(part("count", state="starting", restarts=1), history=history)["parts"][0]
    assert (unknown["trend"]["going"], unknown["trend"]["text"]) == ("unknown", "")


def test_a_lag_of_a_few_seconds_keeps_up_whatever_it_did_last():
    history = History()
    for number in range(13):
        history.take(number * EVERY_SECONDS, {Series("count", "lag"): 1.0 + number})
    found = document(part("count", lag=13, rate_in=40.0), history=history)
    assert found["worst_lag"]["trend"]["text"] == "keeps up"


def test_what_is_lost_is_counted_and_what_does_not_add_up_is_found():
    counts = Counts(received=10, passed=6, filtered=1, dead_lettered=2, in_flight=0)
    metrics = {'late_records_total{kind="a"}': 3.0, "skipped_offsets_total": 4.0}
    totals = document(part("count", counts=counts, metrics=metrics))["totals"]
    assert (totals["dead_lettered"], totals["late"], totals["skipped"]) == (2, 3.0, 4.0)
    assert totals["unaccounted"] == 1


def test_the_history_has_the_numbers_of_each_part_and_of_all():
    run = RunStatus(
        app="plant", command="dev", pid=7, started_at=AT, parts=(part("count", rate_in=2.0, lag=5),)
    )
    parts = keyed([run], several=True)
    assert list(parts) == ["count#7"]
    found = measured(Look(1.0, [run], parts, latencies={"count#7": 0.5}))
    assert found[Series("count#7", "latency")] == 0.5
    assert found[Series("", "in")] == 2.0
    assert found[Series("count#7", "lag")] == 5


def test_a_log_that_is_away_is_told_first_and_parts_that_wait_for_it_need_nothing():
    waits = part("count", state="degraded", reason="no contact with Kafka")
    died = part("split", state="failed", reason="no table")
    away = Away(seconds=75.0, why="no broker at x:9092", do="wait: it is started again")
    found = document(waits, died, part("join"), away=away)
    assert (found["well"], found["mood"], found["summary"]) == (
        False,
        "bad",
        "the log does not answer",
    )
    first, *others = found["troubles"]
    assert (first["what"], first["since_seconds"]) == ("the log does not answer", 75.0)
    assert (first["why"], first["do"]) == (away.why, away.do)
    assert [each["do"].partition(":")[0] for each in others] == [
        "its log says why; mend that, and start the run again. Nothing is lost",
        "nothing for this part",
    ]


def letters_of(count, *, rate=10.0, before=0, at=61.0):
    """Return the troubles of a part that made letters between two looks, a minute apart."""
    history = History()
    earlier = part("watch", rate_in=rate, counts=Counts(received=9, dead_lettered=before))
    for second in range(1, 61, int(EVERY_SECONDS)):
        run = RunStatus(app="plant", command="dev", pid=7, started_at=AT, parts=(earlier,))
        history.take(float(second), measured(Look(second, [run], keyed([run], several=False))))
    now = part(
        "watch",
        rate_in=rate,
        counts=Counts(received=99, dead_lettered=before + count),
        detail={"last dead letter": "words[0]@7: too hot"},
    )
    return document(now, history=history)["troubles"]


def test_a_part_that_gives_up_much_of_what_comes_is_trouble_and_says_why_and_what_to_do():
    (trouble,) = letters_of(300)
    assert trouble["what"] == "watch gives up 50% of its records"
    assert "300 dead letters in 1m00s, the last one: words[0]@7: too hot" in trouble["why"]
    assert "give them back" in trouble["do"]
    (all_of_it,) = letters_of(50, rate=0.0)
    assert all_of_it["what"] == "watch gives up 100% of its records"


@pytest.mark.parametrize(("count", "rate"), [(0, 10.0), (2, 0.0), (20, 10.0)])
def test_few_dead_letters_are_no_trouble(count, rate):
    assert letters_of(count, rate=rate, before=1000) == []
