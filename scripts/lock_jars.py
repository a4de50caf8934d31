"""Write src/penstock/machine/java/jars.lock: which jars, how large, and their SHA-512.

The versions are chosen here, by hand. A jar's size and hash are those of the bytes that the
configured Maven repository sends; compare the difference that git shows before committing it.

    python scripts/lock_jars.py
"""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

from penstock.machine.java.jars import Jar, JarSet
from penstock.machine.java.mirror import configured_mirror

LOCK = Path(__file__).parents[1] / "src/penstock/machine/java/jars.lock"
SECONDS = 60

# org.apache.kafka:kafka_2.13 and what it needs at run time, as Maven resolves it, and a binding
# of slf4j 1.7 so that the broker's logs go to its log4j.
KAFKA = """
at.yawk.lz4:lz4-java:1.10.2
com.dynatrace.hash4j:hash4j:0.22.0
com.fasterxml.jackson.core:jackson-annotations:2.21
com.fasterxml.jackson.core:jackson-core:2.21.2
com.fasterxml.jackson.core:jackson-databind:2.21.2
com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.21.2
com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.2
com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2
com.github.ben-manes.caffeine:caffeine:3.2.0
com.github.luben:zstd-jni:1.5.6-10
com.google.re2j:re2j:1.8
com.typesafe.scala-logging:scala-logging_2.13:3.9.6
com.yammer.metrics:metrics-core:2.2.0
commons-beanutils:commons-beanutils:1.11.0
commons-collections:commons-collections:3.2.2
commons-digester:commons-digester:2.1
commons-logging:commons-logging:1.3.5
commons-validator:commons-validator:1.10.1
net.sf.jopt-simple:jopt-simple:5.0.4
net.sourceforge.argparse4j:argparse4j:0.7.0
org.apache.kafka:kafka-clients:4.3.1
org.apache.kafka:kafka-coordinator-common:4.3.1
org.apache.kafka:kafka-group-coordinator-api:4.3.1
org.apache.kafka:kafka-group-coordinator:4.3.1
org.apache.kafka:kafka-metadata:4.3.1
org.apache.kafka:kafka-raft:4.3.1
org.apache.kafka:kafka-server-common:4.3.1
org.apache.kafka:kafka-server:4.3.1
org.apache.kafka:kafka-share-coordinator:4.3.1
org.apache.kafka:kafka-storage-api:4.3.1
org.apache.kafka:kafka-storage:4.3.1
org.apache.kafka:kafka-tools-api:4.3.1
org.apache.kafka:kafka-transaction-coordinator:4.3.1
org.apache.kafka:kafka_2.13:4.3.1
org.apache.logging.log4j:log4j-api:2.25.4
org.apache.logging.log4j:log4j-core:2.25.4
org.apache.logging.log4j:log4j-slf4j-impl:2.25.4
org.bitbucket.b_c:jose4j:0.9.6
org.hdrhistogram:HdrHistogram:2.2.2
org.jspecify:jspecify:1.0.0
org.pcollections:pcollections:4.0.2
org.scala-lang:scala-library:2.13.18
org.scala-lang:scala-reflect:2.13.18
org.slf4j:slf4j-api:1.7.36
org.xerial.snappy:snappy-java:1.1.10.7
org.yaml:snakeyaml:2.5
"""

# What PySpark's own jars lack. The token provider is of 4.0.0 because later ones are not in every
# mirror; its few classes are the same. Delta's Unity Catalog clients are left out: nothing here
# reaches them.
SPARK = """
org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0
org.apache.kafka:kafka-clients:3.9.2
org.apache.commons:commons-pool2:2.13.1
io.delta:delta-spark_4.2_2.13:4.4.0
io.delta:delta-storage:4.4.0
io.delta:delta-kernel-api:4.4.0
io.delta:delta-kernel-defaults:4.4.0
io.delta:delta-kernel-unitycatalog:4.4.0
"""

HEADER = """\
# The jars that Penstock runs on: set, group:artifact:version, size in bytes, SHA-512.
# Written by scripts/lock_jars.py; not edited by hand.
"""


def measured(jar_set: JarSet, coordinates: str) -> Jar:
    """Download one jar, and return it with the size and hash it has."""
    group, artifact, version = coordinates.split(":")
    jar = Jar(jar_set, group, artifact, version, 0, "")
    mirror = configured_mirror()
    request = Request(mirror.address(jar.repository_path))  # noqa: S310 - see Mirror
    if mirror.authorization:
        request.add_unredirected_header("Authorization", mirror.authorization)
    with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - see Mirror
        body = response.read()
    return Jar(jar_set, group, artifact, version, len(body), hashlib.sha512(body).hexdigest())


def main() -> int:
    """Download everything and write the list."""
    wanted = [
        (jar_set, coordinates)
        for jar_set, text in ((JarSet.KAFKA, KAFKA), (JarSet.SPARK, SPARK))
        for coordinates in sorted(text.split())
    ]
    with ThreadPoolExecutor(8) as pool:
        jars = list(pool.map(lambda pair: measured(*pair), wanted))
    lines = [f"{jar.jar_set} {jar.coordinates} {jar.size} {jar.sha512}\n" for jar in jars]
    LOCK.write_text(HEADER + "".join(lines), encoding="utf-8")
    print(f"{LOCK}: {len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
