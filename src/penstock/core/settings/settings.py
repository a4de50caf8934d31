"""The settings of a deployment as frozen values, with the safe defaults.

How they are read (file, profile, environment, flags) is in ``core/configuration.py``; every
field's ``help`` is what ``penstock config explain`` shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

__all__ = [
    "EMBEDDED",
    "DevSettings",
    "HttpSettings",
    "KafkaSettings",
    "LakeSettings",
    "LogSettings",
    "Secret",
    "ServiceSettings",
    "ServingSettings",
    "Settings",
    "SparkSettings",
]

EMBEDDED = "embedded"


class Secret(str):
    """A text that never shows itself: ``str`` and ``repr`` give ``***``."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the value."""
        return "'***'"

    def __str__(self) -> str:
        """Hide the value."""
        return "***"

    def __format__(self, spec: str) -> str:
        """Hide the value."""
        return "***"

    def reveal(self) -> str:
        """Return the value itself, for the client that needs it."""
        return self[:]


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """The log: which cluster, how to reach it, and how the embedded one is sized."""

    bootstrap: str = _setting(EMBEDDED, "'embedded', or host:port,... of a cluster")
    security_protocol: str = _setting("PLAINTEXT", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
    sasl_mechanism: str = _setting("", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    sasl_username: str = _setting("", "the name to log in with")
    sasl_password: Secret = _setting(Secret(""), "the password to log in with")
    tls_ca_file: str = _setting(
        "", "PEM file of the certificate authorities to trust; empty: those of the system"
    )
    tls_certificate_file: str = _setting("", "PEM file with the client's certificate")
    tls_key_file: str = _setting("", "PEM file with the client's key")
    tls_key_password: Secret = _setting(Secret(""), "the password of the key file")
    request_timeout: timedelta = _setting(timedelta(seconds=30), "how long one request may take")
    replication: int = _setting(1, "copies of a topic that does not set its own number")
    brokers: int = _setting(1, "embedded only: how many brokers, 1 or 3")
    heap_mb: int = _setting(512, "embedded only: heap of each broker")
    max_message_bytes: int = _setting(
        32 << 20, "the largest batch that a broker accepts; of a cluster: its message.max.bytes"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The engine of the pipelines."""

    master: str = _setting("local[*]", "any Spark master")
    driver_memory: str = _setting("1g", "heap of the driver; with a local master, of all of Spark")
    shuffle_partitions: int = _setting(
        0, "state partitions; 0: the number of cores, or 16 on a cluster"
    )
    checkpoint_dir: str = _setting("", "directory of the checkpoints; empty: below home")
    share: str = _setting(
        "on", "`penstock dev`: 'on', one Spark for all pipelines; 'off', one each"
    )
    retry_for: timedelta = _setting(
        timedelta(minutes=10), "how long a pipeline retries while something is unavailable"
    )
    batch_limit: timedelta = _setting(
        timedelta(minutes=15),
        "a pipeline whose batch takes longer is degraded, because it may be stuck",
    )
    on_trimmed: str = _setting(
        "stop", "input that was deleted before it was read: 'stop', or 'skip' and report it"
    )
    options: Mapping[str, str] = field(
        default_factory=dict, metadata={"help": "any other spark.* settings, passed on unchanged"}
    )

    def plain_options(self) -> dict[str, str]:
        """Return the further settings with the secrets among them in clear, for Spark itself."""
        return {
            name: text.reveal() if isinstance(text, Secret) else text
            for name, text in self.options.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSettings:
    """The lake: Delta tables."""

    path: str = _setting("", "directory of the tables; empty: below home")
    upkeep_interval: timedelta = _setting(
        timedelta(minutes=10), "how often a writer maintains its tables; 0s: never"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The engine of the services. Every buffer and wait has its limit here."""

    commit_interval: timedelta = _setting(
        timedelta(milliseconds=100),
        "time between commits; exactly once: at most a quarter of transaction_timeout",
    )
    answer_interval: timedelta = _setting(
        timedelta(milliseconds=20),
        "exactly once: the longest time between commits of a service that answers questions",
    )
    live_interval: timedelta = _setting(
        timedelta(milliseconds=5),
        "the longest time between commits of the services of live queries",
    )
    poll_batch: int = _setting(
        2000, "records taken from the client at once; a slow service takes fewer"
    )
    queued_bytes: int = _setting(
        32 << 20, "bytes fetched ahead, for all partitions of a worker together"
    )
    outgoing_records: int = _setting(
        100_000, "the most records in a commit, and the most that wait to be sent"
    )
    stop_timeout: timedelta = _setting(timedelta(seconds=10), "how long a graceful stop may take")
    session_timeout: timedelta = _setting(
        timedelta(seconds=10), "a worker that is gone for this long loses its partitions"
    )
    poll_interval: timedelta = _setting(
        timedelta(minutes=5), "a call that takes longer is made twice, because its partition moves"
    )
    transaction_timeout: timedelta = _setting(
        timedelta(seconds=30),
        "exactly once: how long a dead worker's transaction holds readers back",
    )
    slow_call: timedelta = _setting(
        timedelta(seconds=30), "a call of your code that takes longer makes its part degraded"
    )
    state: str = _setting(
        "memory", "where state is held: 'memory', or 'disk' for state larger than memory"
    )
    state_dir: str = _setting("", "directory of state on disk; empty: below home")
    standby: str = _setting(
        "off", "'on': each worker keeps a copy of the other workers' state on its disk"
    )
    snapshot_interval: timedelta = _setting(
        timedelta(seconds=10), "how old state on disk may be; newer changes are read again"
    )
    on_trimmed: str = _setting(
        "stop", "input that was deleted before it was read: 'stop', or 'skip' and count it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The page on which a running command tells how its parts are."""

    port: int = _setting(0, "loopback port of /metrics, /health and /status; 0: any free port")
    hosts: str = _setting(
        "", "host names, separated by commas, under which a proxy may request the page"
    )
    console: str = _setting(
        "auto", "'on': the console is served; 'off': it is not; 'auto': unless http.hosts is set"
    )

    console_writes: str = _setting(
        "off", "'on': the console may write where the link of the run is used; 'off': it only reads"
    )

    @property
    def shows_console(self) -> bool:
        """Whether the console is served: it shows records, which a proxy may not be meant to."""
        return self.console == "on" or (self.console == "auto" and not self.hosts.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """Where gateways listen, who may use them, and what they take. Each limit has its name here."""

    host: str = _setting("127.0.0.1", "the address that gateways listen on")
    port: int = _setting(
        8800, "the port of the first gateway, the next one of the second; 0: any free ports"
    )
    names: str = _setting(
        "", "host names, separated by commas, that requests without a token may name"
    )
    tokens_file: str = _setting(
        "", "TOML file with the callers; empty: no tokens, which only a loopback address allows"
    )
    jwks_file: str = _setting(
        "", "file with the public keys (JWKS) whose JSON Web Tokens are good; empty: none are"
    )
    jwt_audience: str = _setting("", "the audience (aud) that a JSON Web Token must be for")
    jwt_issuer: str = _setting(
        "", "the issuer (iss) that a JSON Web Token must have; empty: any that has a key"
    )
    jwt_roles: str = _setting(
        "roles", "the claim with the roles; a dot leads into an object: realm_access.roles"
    )
    jwt_leeway: timedelta = _setting(
        timedelta(seconds=30), "how far the clock of the issuer may be from that of the gateway"
    )
    calls_per_second: int = _setting(
        0, "the most requests of one caller per second, of ten seconds at once; 0: any number"
    )
    tls_certificate_file: str = _setting("", "PEM file with the certificate of the gateways")
    tls_key_file: str = _setting("", "PEM file with its key")
    origins: str = _setting(
        "", "origins, separated by commas, whose pages may use the gateways in a browser (CORS)"
    )
    connections: int = _setting(1000, "the most connections at once; more are refused")
    calls_per_caller: int = _setting(64, "the most requests of one caller at once")
    sockets_per_caller: int = _setting(100, "the most open WebSockets of one caller")
    message_bytes: int = _setting(1 << 20, "the largest message of a client over a WebSocket")
    unread_bytes: int = _setting(
        1 << 20, "the most bytes of messages that wait for the client of one WebSocket"
    )
    live_bytes: int = _setting(
        512 << 20, "the most memory for results of live queries, of each declaration"
    )
    heartbeat: timedelta = _setting(
        timedelta(seconds=5), "how often a client of live queries is told where it stands"
    )
    head_timeout: timedelta = _setting(
        timedelta(seconds=10), "how long a request line with its headers may take"
    )
    silence_timeout: timedelta = _setting(
        timedelta(seconds=30), "how long a client may send nothing, or read nothing of its answer"
    )
    body_bytes: int = _setting(8 << 20, "the largest body, unless it is streamed NDJSON")
    batch_records: int = _setting(10_000, "the most records in a list, or in one atomic request")
    waiting_records: int = _setting(
        50_000, "the most records of all callers that wait for Kafka; more are refused"
    )
    write_timeout: timedelta = _setting(
        timedelta(seconds=20), "how long Kafka may take to acknowledge a record"
    )
    remembered_requests: int = _setting(
        1_000_000, "the most idempotency keys that are remembered; more are refused"
    )
    rows: int = _setting(1000, "the most rows in one answer")
    answer_bytes: int = _setting(8 << 20, "the most bytes of rows in one answer")
    table_bytes: int = _setting(256 << 20, "the most memory for the rows of one table")
    queries: int = _setting(4, "the most SQL queries that run at once; more wait for their turn")
    query_time: timedelta = _setting(
        timedelta(seconds=10), "how long one SQL query may take, its turn included"
    )
    query_rows: int = _setting(10_000, "the most rows in the answer of one SQL query")
    query_bytes: int = _setting(
        64 << 20, "the most memory for groups, joins and orders of one SQL query"
    )
    watches: int = _setting(100, "the most queries and states that are watched at once")
    watch_interval: timedelta = _setting(
        timedelta(milliseconds=500), "how often a query or a state that is watched is asked again"
    )
    wait_limit: timedelta = _setting(
        timedelta(seconds=10), "how long a look-up may wait for the offsets that it names"
    )
    answer_wait: timedelta = _setting(
        timedelta(seconds=30), "how long a request may wait for the answer to its question"
    )
    kept_answer_bytes: int = _setting(
        64 << 20,
        "the most memory for the last answers to questions; older ones are read from Kafka",
    )
    webhook_secret: Secret = _setting(
        Secret(""), "what the answers to webhooks are signed with; a gateway with webhooks needs it"
    )
    webhook_patience: timedelta = _setting(
        timedelta(minutes=1), "how long a webhook is tried again before its answer is a dead letter"
    )
    state_host: str = _setting(
        "127.0.0.1", "the address on which workers answer for their state, to gateways only"
    )
    secret: Secret = _setting(
        Secret(""), "what gateways and workers know of each other; empty: a file below home"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DevSettings:
    """`penstock dev`: how it supervises."""

    restart_backoff: timedelta = _setting(
        timedelta(seconds=1), "the first wait before a part is restarted"
    )
    restart_backoff_max: timedelta = _setting(timedelta(seconds=30), "the longest wait")
    status_interval: timedelta = _setting(
        timedelta(seconds=1), "time between updates of the status"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The logs of parts and of Spark in the project's directory."""

    max_bytes: int = _setting(
        10 << 20, "a log that is larger is rotated, even while it is being written"
    )
    kept: int = _setting(2, "how many older files of each log are kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator may set, in sections."""

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    lake: LakeSettings = field(default_factory=LakeSettings)
    services: ServiceSettings = field(default_factory=ServiceSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    serving: ServingSettings = field(default_factory=ServingSettings)
    dev: DevSettings = field(default_factory=DevSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    home: str = _setting(
        ".penstock", "directory of the embedded broker, checkpoints, the lake and logs"
    )
