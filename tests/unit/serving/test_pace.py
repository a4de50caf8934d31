"""How often a caller may call."""

from penstock.serving.http.pace import BURST_SECONDS, Pace


def test_a_caller_has_so_many_calls_a_second_and_what_was_saved():
    now = 100.0
    pace = Pace(2, clock=lambda: now)
    assert [pace.wait("ann") for _ in range(2 * BURST_SECONDS)] == [0.0] * 2 * BURST_SECONDS
    assert pace.wait("ann") == 0.5
    assert pace.wait("ben") == 0.0, "each caller has their own"
    now += 0.5
    assert pace.wait("ann") == 0.0
    assert pace.wait("ann") == 0.5
    now += 1000
    assert [pace.wait("ann") for _ in range(21)][-2:] == [0.0, 0.5], "no more is saved than that"


def test_without_a_limit_nobody_waits():
    pace = Pace(0, clock=lambda: 0.0)
    assert not any(pace.wait("ann") for _ in range(1000))
