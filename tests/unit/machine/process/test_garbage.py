"""A process of parts looks for garbage rarely."""

import subprocess
import sys

PROGRAM = """
import gc
from penstock.machine.process.garbage import YOUNG_OBJECTS, collect_rarely

rounds = []
collect_rarely()
gc.callbacks.append(lambda phase, info: rounds.append(phase))
kept = [[] for _ in range(YOUNG_OBJECTS // 2)]
few = len(rounds)
more = [[] for _ in range(YOUNG_OBJECTS)]
print(gc.get_freeze_count() > 1_000, few, len(rounds) > 0)
"""


def test_what_is_loaded_is_left_alone_and_new_objects_are_looked_at_rarely():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "0", "True"]
