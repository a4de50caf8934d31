"""What users import: few names, sorted, each in one place, none of Penstock's own modules by accident."""

import importlib

import pytest

PUBLIC = {
    "penstock": (
        "App Context EventTime Output State Timer Timers by_event_time day delete feedback limits"
        " merge micro_batch on_error real_time record retry send ttl"
    ),
    "penstock.state": "ListState MapState Opening",
    "penstock.tables": "Change Rows broadcast",
    "penstock.questions": "ReplyTo Unanswered answer ask",
    "penstock.windows": "accumulating counted discarding everything fixed retracting sessions sliding",
    "penstock.triggers": (
        "after_count after_delay all_of any_of every every_record in_order never on_watermark"
        " repeat until"
    ),
    "penstock.aggregates": (
        "approximate_distinct collect combine count distinct first last maximum mean minimum"
        " quantile top total variance"
    ),
    "penstock.client": "Client ClientLimits Found LiveChange LiveCopy LiveEvent LiveList LiveResult LiveResults RowChange "
    "Selected Sent SyncClient Ticket",
    "penstock.connectors": (
        "AWAY CONNECTORS WHOLE AttachedConnector BatchLimits Captured Feed Item LiveConnector Lookup Moving Position"
        " PositionedConnector Reading Row RowStore RowsRefusedError Telling Trying Writer WritingConnector csv_files files_in http_poll influx_lines json_files kafka_topic keyboard lookup mqtt_topic mqtt_topics"
        " opensearch_documents parquet_files postgres_changes postgres_lookup postgres_rows postgres_table redis_channel redis_keys redis_lookup redis_stream rotated_log run_sink run_source syslog tcp_lines text_file webhook"
    ),
    "penstock.jobs": "JobRun",
    "penstock.lifecycles": "lifecycle",
    "penstock.live": "Asked LiveQueries News ResultCopy field",
    "penstock.models": (
        "Drift ModelVersion Models Reference Refusal Served opened reference_of sealed shape_of"
    ),
    "penstock.patterns": "pattern sequence",
    "penstock.testing": "Driver try_sink try_source",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_has_these_names_sorted_and_no_other(module):
    loaded = importlib.import_module(module)
    assert loaded.__all__ == PUBLIC[module].split()
    assert all(hasattr(loaded, name) for name in loaded.__all__)
    assert loaded.__doc__


def test_no_name_is_in_two_public_modules():
    names = [name for words in PUBLIC.values() for name in words.split()]
    assert len(names) == len(set(names))
