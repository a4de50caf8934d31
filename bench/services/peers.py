"""Sets up what services are compared with: Kafka Streams from jars, Quix in its own environment.

Everything lies in the user's cache, beside the jars of Penstock; the second time it is there.
"""

import sys
from pathlib import Path

from penstock.machine.java.jars import JarSet, jar_paths

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from fetching import compiled, environment, fetched  # noqa: E402 - beside this directory

# What Kafka Streams needs beside the broker's own jars, by SHA-512.
STREAMS = {
    "org.apache.kafka:kafka-streams:4.3.1": (
        "bd45f9bd4ec9232daf4d96334af5655f35c04de8baa569b86ac7c9d12266e0dc"
        "8cf82d0979fc9b5b8d069a6a9a98dcb3a7074b1ec05083af8fde7df91ae4ef3e"
    ),
    "org.rocksdb:rocksdbjni:10.1.3": (
        "e30d5072fa69e9c50fd1c2a907ee6c9213e1b07d0e96d431385d0a4bc5ea1114"
        "0ecc9dd4e5754b5259c8e9aae4d896a85ee9df5bc335e6fea8e2f63226afde98"
    ),
}
QUIX = "quixstreams==3.28.1"


def streams_classpath(source: str = "StreamsPeer.java") -> str:
    """Return the class path of a Kafka Streams peer, fetched and compiled."""
    jars = [fetched(coordinates, sha512) for coordinates, sha512 in STREAMS.items()]
    below = [*jars, *jar_paths(JarSet.KAFKA)]
    return compiled(HERE / source, below, peer="Kafka Streams")


def quix_python() -> Path:
    """Return the Python of the environment that has Quix."""
    return environment(QUIX, [QUIX]) / "bin" / "python"
