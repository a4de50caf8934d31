"""The configuration of the embedded brokers: identity, listeners, sizes."""

from pathlib import Path

from penstock.backbone.broker.plan import ClusterPlan, NodePlan
from penstock.core.settings.settings import KafkaSettings
from penstock.machine.ports import LOOPBACK

__all__ = ["java_options", "log_properties", "server_properties"]

_OFFSETS_KEPT_MINUTES = 10 * 365 * 24 * 60
_MIB = 1 << 20


def server_properties(
    plan: ClusterPlan, node: NodePlan, *, settings: KafkaSettings, data: str
) -> dict[str, str]:
    """Return the configuration of one broker. It listens on the loopback address only.

    ``data`` is relative to the directory it runs in: Kafka would take a comma in a path for a
    second directory.
    """
    voters = (f"{peer.node_id}@{LOOPBACK}:{peer.controller_port}" for peer in plan.nodes)
    copies = min(3, len(plan.nodes))
    safe = max(1, copies - 1)
    largest = settings.max_message_bytes
    properties = {
        "process.roles": "broker,controller",
        "node.id": node.node_id,
        "controller.quorum.voters": ",".join(voters),
        "listeners": (
            f"PLAINTEXT://{LOOPBACK}:{node.port},CONTROLLER://{LOOPBACK}:{node.controller_port}"
        ),
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        # Topics are declared; a misspelt name is an error and not a new topic.
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": safe,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 4,
        # A project may rest for a long while; its positions must still be there.
        "offsets.retention.minutes": _OFFSETS_KEPT_MINUTES,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": safe,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": safe,
        "message.max.bytes": largest,
        "replica.fetch.max.bytes": largest,
        "socket.request.max.bytes": max(100 * _MIB, largest + _MIB),
        # One machine, few clients: answer at once rather than wait for a crowd.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # Retention is seen to within seconds, not minutes. Expired transactions are left at Kafka's
        # own ten seconds: sooner, a broker that comes back ends them while their partitions have
        # no leader yet, skips the mark, and what was aborted becomes visible.
        "log.retention.check.interval.ms": 10_000,
        "log.cleaner.dedupe.buffer.size": 16 * _MIB,
        "num.network.threads": 2,
        "num.io.threads": 4,
        # A broker that was killed and comes back waits for the end of its last session.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
    }
    return {name: str(value) for name, value in properties.items()}


def log_properties(file: str) -> dict[str, str]:
    """Return the broker's log configuration: one rolling file, at most 40 MiB in all."""
    return {
        "status": "error",
        "appender.file.type": "RollingFile",
        "appender.file.name": "file",
        "appender.file.fileName": file,
        "appender.file.filePattern": f"{file}.%i",
        "appender.file.layout.type": "PatternLayout",
        "appender.file.layout.pattern": "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %-5p %m (%c{1})%n%xEx",
        "appender.file.policies.type": "Policies",
        "appender.file.policies.size.type": "SizeBasedTriggeringPolicy",
        "appender.file.policies.size.size": "10MB",
        "appender.file.strategy.type": "DefaultRolloverStrategy",
        "appender.file.strategy.max": "3",
        "rootLogger.level": "info",
        "rootLogger.appenderRef.file.ref": "file",
    }


def java_options(settings: KafkaSettings, *, log_config: Path) -> list[str]:
    """Return the options of a broker's JVM; small, and without files outside its directory."""
    return [
        f"-Xmx{settings.heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-XX:ErrorFile=jvm-crash-%p.log",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={log_config.as_uri()}",
    ]
