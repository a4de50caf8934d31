import subprocess
import sys

import pytest

from penstock.cli.main import make_parser


def test_an_unknown_verb_is_wrong_usage_with_the_nearest_one(penstock):
    answer = penstock("chekc")
    assert answer.code == 2
    assert (
        answer.err == "error: there is no 'chekc': did you mean 'check'?\n  hint: penstock --help\n"
    )


@pytest.mark.parametrize("words", [[], ["check", "--no-such-flag"], ["--set", "x", "check"]])
def test_wrong_usage_exits_with_2_and_says_where_to_read_on(penstock, words):
    answer = penstock(*words)
    assert answer.code == 2
    assert "--help" in answer.err


def test_an_error_has_a_traceback_only_when_asked_for(penstock):
    assert "Traceback" not in penstock("check", "no.py").err
    assert "Traceback" in penstock("--debug", "check", "no.py").err
    assert "Traceback" in penstock("check", "no.py", "--debug").err


def test_a_mistake_of_our_own_is_one_line_and_not_a_traceback(penstock, monkeypatch):
    monkeypatch.setattr("penstock.cli.application.check.load_application", lambda _: 1 / 0)
    answer = penstock("check")
    assert answer.code == 1
    assert answer.err.startswith("error: ZeroDivisionError: division by zero [internal]\n")


def test_an_exception_that_cannot_say_what_it_is_about_is_one_line_too(penstock, monkeypatch):
    class OutlivedError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError(111, "Connection refused")

    def raising(_):
        raise OutlivedError("no such column", 7)

    monkeypatch.setattr("penstock.cli.application.check.load_application", raising)
    answer = penstock("check")
    assert answer.code == 1
    assert answer.err.startswith("error: OutlivedError: no such column [internal]\n")


def test_an_interrupt_exits_with_130_and_says_nothing(penstock, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.application.check.load_application", interrupted)
    answer = penstock("check")
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m penstock.cli config show | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert ran.stdout == "key\tvalue\tfrom\n"
    assert "Broken" not in ran.stderr


def test_help_is_fast_because_it_imports_neither_kafka_nor_spark():
    code = (
        "import sys\nfrom penstock.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pyspark', 'confluent_kafka', 'pandas', 'pyarrow', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "verify an application" in ran.stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("topics produce words --app . {} {}", {"topic": "words", "values": ["{}", "{}"]}),
        ("topics produce --app . words {}", {"topic": "words", "values": ["{}"], "app": "."}),
        ("topics produce words {} --key k {}", {"values": ["{}", "{}"], "key": "k"}),
        ("topics produce words", {"topic": "words", "values": []}),
        ("explain app.py --json part", {"app": "app.py", "part": "part", "json": True}),
        ("lake maintain app.py --set a=b kept", {"app": "app.py", "table": "kept"}),
        ("check --json app.py --debug", {"app": "app.py", "json": True, "debug": True}),
        ("dev app.py --only a b --for 5s", {"app": "app.py"}),
    ],
)
def test_options_may_stand_between_words(words, found):
    arguments = vars(make_parser().parse_args(words.split()))
    assert {name: arguments[name] for name in found} == found
