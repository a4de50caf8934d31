"""Where upkeep of a lake table pays, and what it says."""

from datetime import timedelta

from penstock import App, record
from penstock.core.status.report import PartReport
from penstock.pipelines.lake.caretaker import Caretaker, cleaning_span
from penstock.pipelines.lake.snapshot import PartitionFiles
from penstock.pipelines.lake.upkeep import MANY_FILES, Upkept, to_compact


@record(key="id")
class Reading:
    id: str


def partition(day: str | None, *, small: int, files: int = 100) -> PartitionFiles:
    return PartitionFiles({"at_day": day}, files, small, 1 << 20, 1000)


def test_a_partition_is_compacted_when_it_has_many_small_files_however_many_large_ones():
    few, many = partition("2026-01-01", small=MANY_FILES - 1), partition(None, small=MANY_FILES)
    assert to_compact([few, many]) == [many]
    assert to_compact([]) == []


def test_the_condition_of_a_partition_quotes_what_its_values_hold():
    types = {"device": "string", "at_day": "date", "big": "long"}
    found = PartitionFiles({"device": "it's", "at_day": "2026-01-01", "big": None}, 1, 1, 1, 1)
    assert found.condition(types) == (
        "(`device` = cast(cast(x'69742773' as string) as string)) and "
        "(`at_day` = cast(cast(x'323032362d30312d3031' as string) as date)) and (`big` is null)"
    )


def test_what_was_done_is_said_in_words():
    assert str(Upkept("kept")) == "nothing to do"
    assert str(Upkept("kept", 7, 1200, 3, 40, 2, 5)) == (
        "1,200 expired rows deleted, 40 files became 2, 5 old files deleted"
    )


def test_old_files_are_looked_for_a_few_times_within_the_time_they_are_kept():
    assert cleaning_span(timedelta(days=7)) == timedelta(days=1)
    assert cleaning_span(timedelta(days=365)) == timedelta(days=1)
    assert cleaning_span(timedelta(hours=1)) == timedelta(hours=1)
    assert cleaning_span(timedelta(hours=14)) == timedelta(hours=2)


def test_a_pipeline_whose_table_is_not_looked_after_is_degraded_and_says_why():
    app = App("shop")

    @app.pipeline(reads=app.stream("readings", Reading), writes=app.lake("kept", Reading))
    def keep(readings): ...

    caretaker = Caretaker([keep.writes], site=None, spark=None)
    report = PartReport(part="keep", kind="pipeline", state="running", at=0.0)
    for _ in range(2):
        caretaker._failed("kept", "the disk is full")
    assert caretaker.with_upkeep(report, keep) == report
    caretaker._failed("kept", "the disk is full")
    told = caretaker.with_upkeep(report, keep)
    assert (told.state, told.reason) == ("degraded", "the disk is full")
