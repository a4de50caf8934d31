"""Live queries: evaluations, the index, fan-out, the grid; and from a write to a frame.

``python bench/live/run.py [--seconds N] [--parts-only]`` (four minutes). The parts are measured by
the processor time that they take in one process. From a write to a frame is measured by the clock,
with broker, services, gateway and client on one machine: what is measured is the whole.
"""

import argparse
import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import parts
import whole

COUNTS = (100, 1_000, 10_000, 100_000)
WHOLE = ((200.0, 1_000), (1_000.0, 10_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each figure of the parts")
    parser.add_argument("--parts-only", action="store_true", help="no broker")
    given = parser.parse_args()
    print("| evaluations without an index | a second and core |\n|---|---|")
    evaluations = parts.evaluations(given.seconds)
    for name, rate in evaluations.items():
        print(f"| {name} | {rate:,.0f} |")
    print("\n| queries | writes/s, index and filters | writes/s, a whole cell | candidates |")
    print("|---|---|---|---|")
    indexed = parts.indexed(COUNTS, given.seconds)
    for count, (alone, cell, met) in indexed.items():
        print(f"| {count:,} | {alone:,.0f} | {cell:,.0f} | {met:.2f} |")
    fanout = parts.fanout(5000, given.seconds)
    print(
        f"\n5,000 queries, a client each: {fanout['frames']:,.0f} changes/s and core told, ", end=""
    )
    print(f"{fanout['changes of each query']:.1f} of each query")
    held = parts.memory(5000)
    print(
        f"\nBytes of an open query: {held['cell']:,.0f} in a cell, {held['gateway']:,.0f} in a"
        f" gateway with its 20 documents, which have {held['documents']:,.0f} as JSON"
    )
    print("\n| grid | queries of a cell | writes of a cell | pairs of a cell | all pairs |")
    print("|---|---|---|---|---|")
    for size in (1, 2, 4):
        found = parts.grid_counts(size, 10_000, 10_000)
        print(
            f"| {size} x {size} | {found['queries']:,} | {found['writes']:,} |"
            f" {found['pairs']:,} | {found['all pairs']:,} |"
        )
    evaluate = min(evaluations["one comparison"], evaluations["equality and flag"])
    simulated = parts.simulated(100, evaluate=evaluate, write=indexed[COUNTS[-1]][1])
    print("\nSimulated, 100 x 100 cells of a core each:", end=" ")
    print(", ".join(f"{name} {value:,.0f}" for name, value in simulated.items()))
    if not given.parts_only:
        for rate, queries in WHOLE:
            found = whole.latency(rate=rate, queries=queries, seconds=12.0)
            figures = ", ".join(f"{name} {value:,.1f}" for name, value in found.items())
            print(f"\nFrom a write to a frame, {rate:,.0f} writes/s: {figures}")


if __name__ == "__main__":
    main()
