from pathlib import Path

import pytest

from penstock.backbone.broker.broker import EmbeddedBroker
from penstock.backbone.broker.config import server_properties
from penstock.backbone.broker.plan import ClusterPlan, NodePlan, new_cluster_id, plan_of
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import ConfigurationError
from penstock.machine.java.properties import properties_text

ONE = ClusterPlan.at_ports("cluster", [20001, 20002])
THREE = ClusterPlan.at_ports("cluster", [20001, 20002, 20003, 20004, 20005, 20006])


def test_a_plan_survives_being_written_and_read(tmp_path: Path) -> None:
    THREE.write(tmp_path)
    assert plan_of(tmp_path, brokers=3) == THREE
    assert THREE.nodes[2] == NodePlan(node_id=3, port=20005, controller_port=20006)
    assert THREE.bootstrap == "127.0.0.1:20001,127.0.0.1:20003,127.0.0.1:20005"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"cluster_id": "x", "nodes": []}', '{"nodes": [{"port": 1}]}']
)
def test_a_text_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        ClusterPlan.from_json(text)


def test_cluster_ids_are_as_kafka_makes_them() -> None:
    ids = {new_cluster_id() for _ in range(200)}
    assert len(ids) == 200
    assert {len(one) for one in ids} == {22}
    assert not [one for one in ids if one.startswith("-")]


def test_brokers_listen_on_the_loopback_address_only() -> None:
    properties = server_properties(ONE, ONE.nodes[0], settings=KafkaSettings(), data="data")
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"
    assert properties["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize(("plan", "copies", "safe"), [(ONE, "1", "1"), (THREE, "3", "2")])
def test_copies_follow_the_number_of_brokers(plan: ClusterPlan, copies: str, safe: str) -> None:
    properties = server_properties(plan, plan.nodes[0], settings=KafkaSettings(), data="data")
    for name in ("default", "offsets.topic", "transaction.state.log"):
        assert properties[f"{name}.replication.factor"] == copies
    assert properties["min.insync.replicas"] == safe
    assert properties["transaction.state.log.min.isr"] == safe


def test_the_largest_message_is_let_through_everywhere() -> None:
    settings = KafkaSettings(max_message_bytes=200 << 20)
    properties = server_properties(ONE, ONE.nodes[0], settings=settings, data="data")
    assert properties["message.max.bytes"] == properties["replica.fetch.max.bytes"]
    assert int(properties["socket.request.max.bytes"]) > 200 << 20


def test_any_text_can_be_a_property() -> None:
    assert properties_text({"a": "C:\\x", "b": "é = 1"}) == "a=C:\\\\x\nb=\\u00e9 = 1\n"


def test_two_brokers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka.brokers is 2"):
        EmbeddedBroker(tmp_path, KafkaSettings(brokers=2))


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("text")
    with pytest.raises(ConfigurationError, match="something other") as caught:
        EmbeddedBroker(tmp_path).start()
    assert caught.value.code == "broker.directory"
    assert "thesis.tex" in caught.value.detail


def test_data_of_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node-1" / "data").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"kafka\.brokers = 1, not 3"):
        EmbeddedBroker(tmp_path, KafkaSettings(brokers=3)).start()


def test_data_without_a_cluster_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node-1" / "data").mkdir(parents=True)
    with pytest.raises(ConfigurationError) as caught:
        EmbeddedBroker(tmp_path).start()
    assert caught.value.code in ("broker.directory", "jars.missing", "java.missing")


def test_missing_jars_are_said_and_nothing_is_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "empty"))
    broker = EmbeddedBroker(tmp_path / "broker")
    with pytest.raises(ConfigurationError) as caught:
        broker.start()
    assert caught.value.code in ("jars.missing", "java.missing")
    assert not broker.alive()


def test_a_broker_that_was_not_started_has_no_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="was not started"):
        _ = EmbeddedBroker(tmp_path).bootstrap


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        EmbeddedBroker(tmp_path / "file" / "broker").start()
    assert caught.value.code == "broker.directory"
