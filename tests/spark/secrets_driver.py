"""A session with secrets among its settings: exits with 0 where none of them can be seen."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.backbone.client.connection import Connection
from penstock.core.settings.settings import KafkaSettings, Secret, Settings, SparkSettings
from penstock.errors import ConfigurationError
from penstock.machine.places import Places
from penstock.pipelines.gate.reading import kafka_options
from penstock.pipelines.spark.session import session

HIDDEN = 'S3CRET-VALUE with "é" '
OPTIONS = {"spark.hadoop.fs.s3a.secret.key": Secret(HIDDEN)}
LOGIN = 'Plain required username="me" password="hush-hush";'


def environments(rows: Iterator[Any]) -> list[dict[str, str]]:
    return [dict(os.environ) for _ in rows]


def look_at_processes(spark: Any, home: Path) -> None:
    hadoop = spark._jsc.hadoopConfiguration()
    assert hadoop.get("fs.s3a.secret.key") == HIDDEN
    assert not list(home.rglob("*.properties"))
    found = spark.range(1).rdd.mapPartitions(environments).collect()[0]
    family = psutil.Process().children(recursive=True)
    assert family
    for process in family:
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            assert "S3CRET" not in " ".join(process.cmdline())
            found |= process.environ()
    assert not [each for each in found if each.startswith("PENSTOCK_KAFKA")]
    assert "PENSTOCK_KAFKA_SASL_PASSWORD" in os.environ
    assert "S3CRET" not in spark.sql("set").toPandas().to_string()


def look_at_the_key(spark: Any, tls: KafkaSettings) -> Path:
    options = kafka_options(Connection("127.0.0.1:1", tls))
    assert "kafka.ssl.keystore.key" not in options
    store = Path(options["kafka.ssl.keystore.location"])
    assert store.stat().st_mode & 0o777 == 0o600
    assert store.parent.stat().st_mode & 0o777 == 0o700
    # Kafka's own client takes the key.
    kafka = {name.removeprefix("kafka."): text for name, text in options.items()}
    factory = spark._jvm.org.apache.kafka.common.security.ssl.DefaultSslEngineFactory()
    factory.configure(kafka | {"ssl.protocol": "TLSv1.3"})
    assert factory.keystore() is not None
    wrong = Connection("127.0.0.1:1", replace(tls, tls_key_password=Secret("other")))
    with pytest.raises(ConfigurationError, match="cannot be decrypted"):
        kafka_options(wrong)
    return store


def look_at_a_plan(spark: Any, key: str) -> None:
    given = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "subscribe": "t",
        "kafka.ssl.keystore.key": key,
        "kafka.sasl.jaas.config": LOGIN,
    }
    frame = spark.readStream.format("kafka").options(**given).load()
    execution = frame._jdf.queryExecution()
    plan = execution.toString() + execution.logical().toString()
    assert key.splitlines()[3] not in plan
    assert "hush-hush" not in plan


def main() -> None:
    home, key, certificate = sys.argv[1:]
    tls = KafkaSettings(
        security_protocol="SSL",
        tls_key_file=key,
        tls_certificate_file=certificate,
        tls_key_password=Secret("open-sesame"),
    )
    settings = Settings(spark=SparkSettings(options=OPTIONS))
    with session(settings, Places(Path(home)), name="secret") as spark:
        look_at_processes(spark, Path(home))
        store = look_at_the_key(spark, tls)
        look_at_a_plan(spark, store.read_text())
    assert not store.exists()


if __name__ == "__main__":
    main()
