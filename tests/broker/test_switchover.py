"""The difference of a rebuilt table is written whole, or in pieces that no time-out ends."""

import time
from itertools import count

from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.pipelines.rebuild.switchover import WHOLE_LIMIT, write_changes

SEEN_SECONDS = 60


def changes(number: int, seen, *, whole: int):
    """Give changes; before each, readers come to see those that have come to be whole."""
    before = len(seen())
    for each in range(number):
        deadline = time.monotonic() + SEEN_SECONDS
        while len(seen()) != before + each // whole * whole:
            assert time.monotonic() < deadline, f"readers see {len(seen())} before change {each}"
        yield f"key {each}".encode(), None if each % 2 else b"value"


def test_a_difference_that_takes_longer_than_a_transaction_may_is_written_in_several(kafka, topic):
    name = topic(partitions=1)

    def seen() -> list[bytes]:
        return [each.key for each in LogReader(kafka).read(name)]

    third = WHOLE_LIMIT.total_seconds() / 3
    ticks = count()
    with TransactionalProducer(kafka, f"{name}.slow") as producer:
        slow = changes(6, seen, whole=3)
        assert write_changes(producer, slow, into=name, clock=lambda: next(ticks) * third) == 6
    with TransactionalProducer(kafka, f"{name}.quick") as producer:
        quick = changes(4, seen, whole=4)
        assert write_changes(producer, quick, into=name, clock=lambda: 0.0) == 4
    assert len(seen()) == 10
