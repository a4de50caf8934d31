from datetime import timedelta
from pathlib import Path

import pytest

from penstock.backbone.connect import connected
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.errors import ConfigurationError
from penstock.machine.places import Places
from penstock.machine.ports import free_ports


def test_a_cluster_that_does_not_answer_is_an_error_with_the_reason(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    kafka = KafkaSettings(bootstrap=address, request_timeout=timedelta(milliseconds=200))
    with (
        pytest.raises(ConfigurationError, match=f"Kafka at {address} does not answer") as caught,
        connected(Settings(kafka=kafka), Places(tmp_path)),
    ):
        pass
    assert caught.value.code == "kafka.unreachable"
    assert "Connection refused" in caught.value.detail
    assert "penstock doctor" in caught.value.hint


def test_a_certificate_that_cannot_be_used_is_an_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    kafka = KafkaSettings(
        bootstrap="127.0.0.1:1", security_protocol="SSL", tls_ca_file=str(tmp_path / "ca.pem")
    )
    with (
        pytest.raises(ConfigurationError) as caught,
        connected(Settings(kafka=kafka), Places(tmp_path)),
    ):
        pass
    assert caught.value.code == "kafka.security"
    assert "ca.location" in caught.value.detail
