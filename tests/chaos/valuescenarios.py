"""Hostile values with other seeds than those of ``make test``."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from penstock.pipelines.gate.gate import codec_gate

ROOT = Path(__file__).resolve().parents[2]
hostile = SimpleNamespace(**runpy.run_path(str(ROOT / "tests" / "hostilevalues.py")))

PAYLOADS, BATCH = 50_000, 500
SPARK_SECONDS = 900


class Unavailable(Exception):  # noqa: N818 - as the other kits call it
    """Never raised here: values need nothing that a machine may lack."""


def run(name: str, seed: int, *, scale: float = 1.0) -> tuple[list[str], dict[str, Any]]:
    """Play a scenario; return what is wrong, and what it did."""
    findings, facts = SCENARIOS[name](seed, scale)
    return findings, facts


def hostile_values(seed: int, scale: float) -> tuple[list[str], dict[str, Any]]:
    """The gate and the codec give one verdict on each of many hostile payloads."""
    random, gate = Random(seed), codec_gate(hostile.samples)
    findings, good, count = [], 0, int(PAYLOADS * scale)
    for _ in range(0, count, BATCH):
        rows = [hostile.with_key(hostile.payload(random)) for _ in range(BATCH)]
        columns = [pa.array([row[at] for row in rows], pa.binary()) for at in (0, 1)]
        (found,) = gate([pa.RecordBatch.from_arrays(columns, ["key", "value"])])
        for row, refused in zip(rows, found.columns[-1].to_pylist(), strict=True):
            accepted = hostile.accepted(row) is not None
            good += accepted
            if refused is accepted:
                findings.append(f"the gate and the codec differ on {row[1]!r}")
    return findings, {"payloads": count, "records": good}


def hostile_values_on_spark(seed: int, scale: float) -> tuple[list[str], dict[str, Any]]:
    """Every hostile payload is a dead letter, or passes gate, writer, lake and query unchanged."""
    del scale
    test = "tests/spark/test_hostile.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", test],
        cwd=ROOT,
        env=os.environ | {"PENSTOCK_HOSTILE_SEED": str(1000 + seed)},
        capture_output=True,
        text=True,
        timeout=SPARK_SECONDS,
        check=False,
    )
    return ([done.stdout[-3000:]] if done.returncode else []), {"test": test}


SCENARIOS = {
    "hostile-values": hostile_values,
    "hostile-values-on-spark": hostile_values_on_spark,
}
