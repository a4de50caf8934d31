from penstock.connectors.ratelimit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_rate_everything_may_go_at_once():
    assert RateLimit(None, clock=Clock()).due(1_000_000) == 1_000_000


def test_lines_become_due_as_time_passes():
    clock = Clock()
    pace = RateLimit(10, clock=clock)
    assert pace.due(5) == 1
    assert pace.due(5) == 0
    clock.now += 0.35
    assert pace.due(5) == 3
    assert pace.due(5) == 0


def test_less_than_one_line_a_second_is_possible():
    clock = Clock()
    pace = RateLimit(0.5, clock=clock)
    assert pace.due(1) == 1
    clock.now += 1.0
    assert pace.due(1) == 0
    clock.now += 1.0
    assert pace.due(1) == 1


def test_a_pause_is_not_made_up_for_by_a_burst():
    clock = Clock()
    pace = RateLimit(10, clock=clock)
    clock.now += 3600
    assert pace.due(1_000) == 10
