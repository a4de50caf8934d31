"""The session starts quietly, works with our interpreter, and never outlives its process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from penstock.machine.java.jars import jars_dir
from penstock.pipelines.spark.classes import archive_words

pytestmark = pytest.mark.spark

_WAIT_SECONDS = 200


def _script(tmp_path: Path, body: str) -> list[str]:
    text = f"""
        import os, sys
        from pathlib import Path
        from penstock.core.settings.settings import Settings
        from penstock.machine.places import Places
        from penstock.pipelines.spark.session import session

        places = Places(Path({str(tmp_path)!r}))
        """
    return [sys.executable, "-c", textwrap.dedent(text) + textwrap.dedent(body)]


def _descendants(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_a_killed_driver_leaves_neither_jvm_nor_python_worker_behind(tmp_path: Path):
    command = _script(
        tmp_path,
        """
        with session(Settings(), places, name="killed") as spark:
            total = spark.range(4).rdd.map(lambda row: row.id).sum()
            print("ready", total, flush=True)
            sys.stdin.read()
        """,
    )
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready 6\n"
    family = _descendants(process)
    names = " ".join(child.name() for child in family)
    assert "java" in names
    assert "python" in names

    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=_WAIT_SECONDS)

    _, alive = psutil.wait_procs(family, timeout=_WAIT_SECONDS)
    assert alive == []


def test_a_session_says_nothing_on_the_terminal_and_ends_with_its_block(tmp_path: Path):
    command = _script(
        tmp_path,
        """
        import pyspark
        handler = __import__("signal").getsignal(2)
        with session(Settings(), places, name="quiet", held=3) as spark:
            assert spark.range(3).count() == 3
            assert spark.sparkContext.master == f"local[{len(os.sched_getaffinity(0)) + 3},4]"
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            with session(Settings(), places, name="inner") as inner:
                assert inner is spark
            proc = pyspark.SparkContext._gateway.proc
        assert proc.poll() is not None
        assert __import__("signal").getsignal(2) is handler
        assert list(places.home.glob("spark/quiet-*")) == []
        assert not Path("spark-warehouse").exists()
        """,
    )

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=2 * _WAIT_SECONDS, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "logs" / "quiet.spark.log").exists()


def test_sessions_map_an_archive_of_classes_once_there_is_one(tmp_path: Path, monkeypatch):
    (tmp_path / "jars").symlink_to(jars_dir())
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    assert archive_words() == [], "no session of a user writes it"
    written, *_ = archive_words(writes=True)
    Path(written.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"\xa8\xab\x0b\xf0classes")
    mapped, *_ = archive_words()
    assert mapped.startswith(f"-XX:SharedArchiveFile={tmp_path}")


def test_python_workers_run_our_interpreter(spark):
    found = spark.range(1).rdd.map(lambda _: __import__("sys").executable).first()
    assert found == sys.executable


def test_secrets_stand_in_no_command_line_environment_or_plan(tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = (
        "openssl req -x509 -newkey rsa:2048 -subj /CN=penstock -days 2 -passout pass:open-sesame"
    )
    subprocess.run(
        [*words.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    assert "BEGIN ENCRYPTED PRIVATE KEY" in key.read_text()
    driver = Path(__file__).with_name("secrets_driver.py")
    command = [sys.executable, str(driver), str(tmp_path), str(key), str(certificate)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_WAIT_SECONDS * 2,
        check=False,
        env=os.environ | {"PENSTOCK_KAFKA_SASL_PASSWORD": "x", "PENSTOCK_KAFKA_SASL_USERNAME": "y"},
    )
    assert done.returncode == 0, done.stderr
