"""What the package declares it needs is what the project is developed and tested with."""

import re
import tomllib
from pathlib import Path

from penstock.machine.packages import INSTALL_SPARK

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = re.compile(r"[A-Za-z0-9-]+")


def names(requirements: list[str]) -> set[str]:
    return {NAME.match(line)[0] for line in requirements if NAME.match(line)}


def wanted(file: str) -> set[str]:
    return names((ROOT / "requirements" / file).read_text("utf-8").splitlines())


def test_what_the_package_needs_is_what_is_locked():
    extras = PROJECT["optional-dependencies"]
    assert names(PROJECT["dependencies"]) | names(extras["spark"]) == wanted("runtime.in")
    assert names(extras["java"]) == wanted("java.in")
    of_connectors = extras.keys() - {"spark", "java"}
    assert set().union(*(names(extras[each]) for each in of_connectors)) == wanted("connectors.in")


def test_services_need_nothing_of_spark():
    assert not names(PROJECT["dependencies"]) & {"pyspark", "pandas", "pyarrow", "grpcio"}


def test_what_errors_tell_to_install_is_an_extra():
    assert set(re.findall(r"penstock\[(\w+)\]", INSTALL_SPARK)) <= set(
        PROJECT["optional-dependencies"]
    )


def test_every_python_that_is_declared_is_one_that_is_supported():
    versions = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if ":: 3." in text]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert len(versions) >= 3
