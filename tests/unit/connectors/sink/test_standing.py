"""A sink that has written more than its log has stands before another log."""

import pytest

from penstock.connectors.sink.standing import require_same_log
from penstock.errors import ConfigurationError


@pytest.mark.parametrize("written", [{}, {0: 0}, {0: 10}, {0: 7, 1: 3}])
def test_what_the_log_has_or_had_may_be_written(written):
    require_same_log("numbers", written, {0: (5, 10), 1: (0, 3)})


def test_what_the_log_never_had_is_refused_with_every_partition():
    with pytest.raises(ConfigurationError) as raised:
        require_same_log("numbers", {2: 1, 0: 11, 1: 3}, {0: (0, 10), 1: (0, 3)})
    assert raised.value.code == "sink.beyond-end"
    assert raised.value.detail.split("\n  ") == [
        "numbers[0] ends at offset 10, written up to 11",
        "numbers[2] ends at offset 0, written up to 1",
    ]
