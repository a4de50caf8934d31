"""Scripts of the project run with any Python: they start again with the one of `make setup`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHER = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
pytestmark = pytest.mark.skipif(
    not OTHER.exists(), reason="there is no Python beside the project's"
)


def run(script, *words, root=ROOT):
    # Where the sources are found by PYTHONPATH any Python finds them, and not what they need.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [OTHER, root / script, *words], capture_output=True, text=True, check=False, env=environ
    )


@pytest.mark.parametrize("script", ["tests/conformance/panes.py", "tests/chaos/run.py"])
def test_a_script_starts_again_with_the_projects_python(script):
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")


def test_without_the_projects_python_it_says_how_to_get_it(tmp_path):
    for name in ("scripts/own_python.py", "tests/conformance/panes.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    done = run("tests/conformance/panes.py", root=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "penstock is not installed; `make setup` in the project's folder does it\n"
    )
