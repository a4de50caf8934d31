"""Connectors: sources bring data of outside systems onto streams, sinks write streams to them.

Look-ups ask outside systems for rows while records are handled.

================  ========================================================================
files             sources: a file, a rotated log, a directory; sinks: JSON lines, CSV, Parquet
syslog            a source: messages of syslog over UDP, TCP or TLS
tcp               a source: lines over TCP, from many senders
http              a source: a document that is fetched; a sink: requests that are posted
influx            a sink: points of a time-series store, by Influx line protocol
kafka             a source: a topic of another cluster; exactly once
keyboard          a source: lines that a person types
postgres          a sink: rows of tables of PostgreSQL; a source: their changes; exactly once
captured          what a source says of a row that has changed
connector         what a connector implements: live or positioned sources, sinks
opening           connections are opened whole or not at all
lookup            rows of outside stores that services ask for, kept for a while
lines, ratelimit  bytes cut into lines; the length of each and their speed are bounded
redis             sinks: keys and channels of Redis; a source: its streams; exactly once
mqtt              a source: topics of a broker; a sink: messages
opensearch        a sink: documents of an index of OpenSearch; exactly once
options, secret   options as people write them, and secrets by reference
source, sink      how sources and sinks are run
retrying          sessions one after another: what is transient is tried again
catalogue         which connectors there are, and what each takes
progress          what a source or sink reports while it runs
run               runs one source or sink of an application
================  ========================================================================

A connector of your own needs none of these but ``connector``: see ``docs/connectors.md``.
"""

from penstock.connectors.captured import Captured
from penstock.connectors.connector import (
    AWAY,
    WHOLE,
    AttachedConnector,
    BatchLimits,
    Feed,
    Item,
    LiveConnector,
    Moving,
    Position,
    PositionedConnector,
    Reading,
    Row,
    RowsRefusedError,
    Telling,
    Trying,
    Writer,
    WritingConnector,
)
from penstock.connectors.files.directory import files_in
from penstock.connectors.files.jsonfiles import csv_files, json_files, parquet_files
from penstock.connectors.files.rotated import rotated_log
from penstock.connectors.files.textfile import text_file
from penstock.connectors.http.poll import http_poll
from penstock.connectors.http.webhook import webhook
from penstock.connectors.influx.sink import influx_lines
from penstock.connectors.kafka.source import kafka_topic
from penstock.connectors.keyboard import keyboard
from penstock.connectors.lookup.definition import Lookup, lookup
from penstock.connectors.lookup.store import RowStore
from penstock.connectors.mqtt.sink import mqtt_topic
from penstock.connectors.mqtt.source import mqtt_topics
from penstock.connectors.opensearch.sink import opensearch_documents
from penstock.connectors.postgres.changes import postgres_changes
from penstock.connectors.postgres.lookup import postgres_lookup
from penstock.connectors.postgres.rowsource import postgres_rows
from penstock.connectors.postgres.table import postgres_table
from penstock.connectors.redis.keys import redis_channel, redis_keys
from penstock.connectors.redis.lookup import redis_lookup
from penstock.connectors.redis.stream import redis_stream
from penstock.connectors.run import run_sink, run_source
from penstock.connectors.syslog.source import syslog
from penstock.connectors.tcp import tcp_lines

CONNECTORS = {
    each.__name__: each
    for each in (
        csv_files,
        files_in,
        http_poll,
        influx_lines,
        json_files,
        kafka_topic,
        keyboard,
        mqtt_topic,
        mqtt_topics,
        opensearch_documents,
        parquet_files,
        postgres_changes,
        postgres_lookup,
        postgres_rows,
        postgres_table,
        redis_channel,
        redis_keys,
        redis_lookup,
        redis_stream,
        rotated_log,
        syslog,
        tcp_lines,
        text_file,
        webhook,
    )
}
"""The connectors of Penstock by their names: functions that make one from options."""

__all__ = [
    "AWAY",
    "CONNECTORS",
    "WHOLE",
    "AttachedConnector",
    "BatchLimits",
    "Captured",
    "Feed",
    "Item",
    "LiveConnector",
    "Lookup",
    "Moving",
    "Position",
    "PositionedConnector",
    "Reading",
    "Row",
    "RowStore",
    "RowsRefusedError",
    "Telling",
    "Trying",
    "Writer",
    "WritingConnector",
    "csv_files",
    "files_in",
    "http_poll",
    "influx_lines",
    "json_files",
    "kafka_topic",
    "keyboard",
    "lookup",
    "mqtt_topic",
    "mqtt_topics",
    "opensearch_documents",
    "parquet_files",
    "postgres_changes",
    "postgres_lookup",
    "postgres_rows",
    "postgres_table",
    "redis_channel",
    "redis_keys",
    "redis_lookup",
    "redis_stream",
    "rotated_log",
    "run_sink",
    "run_source",
    "syslog",
    "tcp_lines",
    "text_file",
    "webhook",
]
