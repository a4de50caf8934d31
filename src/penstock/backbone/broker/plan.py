"""The embedded brokers of a directory: which cluster, how many, on which ports."""

import base64
import json
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from penstock.errors import ConfigurationError
from penstock.machine.files import write_atomically
from penstock.machine.ports import LOOPBACK, free_ports

__all__ = ["ClusterPlan", "NodePlan", "cluster_of", "new_cluster_id", "plan_of"]

_PLAN_FILE = "broker.json"
_LOCK_FILE = "start.lock"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One broker, which is a controller too: its id and its two ports."""

    node_id: int
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The brokers of one directory; kept in ``broker.json``, so ports stay as they are."""

    cluster_id: str
    nodes: tuple[NodePlan, ...]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"{LOOPBACK}:{node.port}" for node in self.nodes)

    def write(self, directory: Path) -> None:
        """Store the plan in its directory."""
        write_atomically(directory / _PLAN_FILE, json.dumps(asdict(self), indent=2) + "\n")

    def moved(self) -> Self:
        """Return the same cluster on other ports, free now."""
        return self.at_ports(self.cluster_id, free_ports(2 * len(self.nodes)))

    @property
    def ports(self) -> list[int]:
        """Every port of every broker."""
        return [port for node in self.nodes for port in (node.port, node.controller_port)]

    @classmethod
    def at_ports(cls, cluster_id: str, ports: list[int]) -> Self:
        """Return a plan with one broker for each two ports."""
        pairs = zip(ports[::2], ports[1::2], strict=True)
        return cls(cluster_id, tuple(NodePlan(i, *pair) for i, pair in enumerate(pairs, start=1)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the plan a text holds; ValueError if it holds none."""
        try:
            data = json.loads(text)
            nodes = tuple(NodePlan(**node) for node in data["nodes"])
            ids = [node.node_id for node in nodes]
            if ids != list(range(1, len(nodes) + 1)) or not nodes:
                raise ValueError(f"nodes {ids}")
            return cls(str(data["cluster_id"]), nodes)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(str(error)) from error


def new_cluster_id() -> str:
    """Return an id as Kafka makes them: a random UUID in base 64."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes)).startswith(b"-"):
        pass  # Kafka's tools would take it for an option
    return text.rstrip(b"=").decode()


def plan_of(directory: Path, *, brokers: int) -> ClusterPlan:
    """Return the plan of a directory: as it was written, or from its data, or a new one.

    Raises ConfigurationError (``broker.directory``) if the directory is of something else, or of
    another number of brokers.
    """
    _refuse_foreign(directory)
    data = sorted(directory.glob("node-*/data"))
    try:
        plan = ClusterPlan.from_json((directory / _PLAN_FILE).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # new, or damaged: the data says what it is of
        cluster_id = (cluster_of(data[0]) if data else None) or new_cluster_id()
        plan = ClusterPlan.at_ports(cluster_id, free_ports(2 * (len(data) or brokers)))
    if len(plan.nodes) == brokers:
        return plan
    if not data:
        return ClusterPlan.at_ports(plan.cluster_id, free_ports(2 * brokers))
    raise ConfigurationError(
        f"{directory} was created with kafka.brokers = {len(plan.nodes)}, not {brokers}",
        code="broker.directory",
        hint=f"set kafka.brokers to {len(plan.nodes)}, or home to another directory",
    )


def _refuse_foreign(directory: Path) -> None:
    strange = sorted(
        path.name
        for path in directory.iterdir()
        if path.name not in (_PLAN_FILE, _LOCK_FILE)
        and not path.name.startswith(("node-", f".{_PLAN_FILE}"))
    )
    if strange:
        raise ConfigurationError(
            f"{directory} contains something other than an embedded broker",
            code="broker.directory",
            detail=f"found {', '.join(strange[:5])}",
            hint="set home to another directory",
        )


def cluster_of(data: Path) -> str | None:
    """Return the id of the cluster whose data a directory holds."""
    try:
        text = (data / "meta.properties").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "cluster.id":
            return value.strip()
    return None
