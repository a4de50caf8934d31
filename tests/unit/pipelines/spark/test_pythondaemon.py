"""What Python workers are forked from: everything imported, and nothing that a fork would break."""

import subprocess
import sys

SCRIPT = """
import gc, os, sys, threading
from penstock.pipelines.spark import pythondaemon

assert not any(each in sys.modules for each in pythondaemon.MODULES), "before it is the daemon"
pythondaemon.preload()
assert all(each in sys.modules for each in pythondaemon.MODULES)
assert gc.get_freeze_count() > 10_000, "workers do not look through it"
assert threading.active_count() == 1, "a fork would lose another one"
if os.fork() == 0:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    sums = pa.table({"key": [1, 1, 2], "value": [1.0, 2.0, 3.0]}).group_by("key")
    found = sums.aggregate([("value", "sum")]).column("value_sum").to_pylist()
    product = np.ones((300, 300)) @ np.ones((300, 300))
    os._exit(0 if found == [3.0, 3.0] and product[0, 0] == 300 else 1)
_, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_it_has_imported_what_workers_need_and_its_forks_can_compute():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
