"""Where the log goes on behind an archive, and what is refused because it does not."""

import logging
from datetime import datetime

import pytest

from penstock import App, record
from penstock.errors import ConfigurationError
from penstock.pipelines.history.archive import seam_of


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


@pytest.fixture
def archive():
    app = App("app")
    return app.archive(app.stream("readings", Reading, partitions=3))


def test_the_log_goes_on_where_the_archive_ends_and_where_it_has_nothing_at_the_beginning(archive):
    ends = {0: (0, 9), 1: (4, 20), 2: (7, 7)}
    assert seam_of(archive, {0: 5, 1: 4}, ends, skip=False) == {0: 5, 1: 4, 2: 7}


def test_all_that_is_neither_in_the_archive_nor_on_the_log_is_named_and_refused(archive):
    ends = {0: (9, 12), 1: (4, 20), 2: (2_000, 2_000)}
    with pytest.raises(ConfigurationError) as refusal:
        seam_of(archive, {0: 5, 1: 4, 2: 1}, ends, skip=False)
    assert str(refusal.value) == (
        "2,003 offsets of readings are neither in readings.archive nor on the log [history.gap]\n"
        "  readings[0] wants offset 5, the log begins at 9; "
        "readings[2] wants offset 1, the log begins at 2000\n"
        "  hint: keep records longer; to continue without them: --set spark.on_trimmed=skip"
    )


def test_where_it_is_allowed_the_gap_is_skipped_and_logged(archive, caplog):
    with caplog.at_level(logging.WARNING, logger="penstock.pipelines"):
        seam = seam_of(archive, {0: 5, 1: 6}, {0: (9, 12), 1: (0, 6)}, skip=True)
    assert seam == {0: 9, 1: 6}
    (said,) = caplog.messages
    assert "4 offsets of readings are neither" in said
    assert said.endswith("(readings[0] wants offset 5, the log begins at 9); they are skipped")


@pytest.mark.parametrize("skip", [False, True])
def test_a_log_that_ends_before_its_archive_is_another_one_and_refused_in_any_case(archive, skip):
    with pytest.raises(ConfigurationError) as refusal:
        seam_of(archive, {0: 5, 1: 6}, {0: (0, 3), 1: (0, 6)}, skip=skip)
    assert str(refusal.value) == (
        "readings.archive does not belong to the existing log [history.other-log]\n"
        "  readings[0] ends at offset 3, its archive ends at 5: "
        "the topic was created again, or a broker has lost records\n"
        "  hint: archive it under another name: "
        "app.archive(..., name=...) instead of readings.archive"
    )
