import pytest
from pyspark import SparkContext

from penstock.cli.load import load_application
from penstock.errors import ConfigurationError, DefinitionError, Problem

ONE = 'from penstock import App\napp = App("one")\n'


def problems(reference: str) -> list[Problem]:
    with pytest.raises(DefinitionError) as caught:
        load_application(reference)
    return list(caught.value.problems)


@pytest.mark.parametrize("reference", [".", "app.py", "app", "app:app", "app.py:app", ".:app"])
def test_an_application_is_named_by_directory_file_or_module(project, reference):
    (project / "app.py").write_text(ONE)
    application = load_application(reference)
    assert application.graph.app == "one"
    assert application.root == project


def test_a_file_of_a_package_is_imported_as_part_of_it(project):
    package = project / "outer" / "inner"
    package.mkdir(parents=True)
    (project / "outer" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "names.py").write_text('NAME = "packed"\n')
    (package / "app.py").write_text(
        "from penstock import App\nfrom .names import NAME\napp = App(NAME)\n"
    )
    application = load_application("outer/inner")
    assert application.graph.app == "packed"
    assert application.root == project


def test_another_file_of_the_same_name_is_loaded_afresh(project):
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "app.py").write_text(f'from penstock import App\napp = App("{name}")\n')
    assert load_application("one").graph.app == "one"
    assert load_application("two").graph.app == "two"


def test_of_several_applications_one_must_be_chosen(project):
    (project / "app.py").write_text(f'{ONE}other = App("other")\nsame = app\n')
    with pytest.raises(ConfigurationError, match=r"choose one: app\.py:app") as caught:
        load_application(".")
    assert caught.value.code == "app.several"
    assert load_application("app.py:other").graph.app == "other"
    with pytest.raises(ConfigurationError, match="did you mean 'other'"):
        load_application("app.py:othr")


@pytest.mark.parametrize(
    ("reference", "code", "text"),
    [
        (".", "app.not-found", "the directory has no app.py"),
        ("ap.py", "app.not-found", "there is no such file"),
        ("no.such.module", "app.not-found", "no module 'no' here"),
        ("empty.py", "app.none", "declares no application"),
        ("json.py", "app.not-python", "has the name of a module of Python's standard library"),
        ("my-app.py", "app.not-python", "cannot be imported"),
    ],
)
def test_what_is_no_application_is_refused_with_a_way_out(project, reference, code, text):
    for name in ("empty.py", "json.py", "my-app.py"):
        (project / name).touch()
    with pytest.raises(ConfigurationError, match=text) as caught:
        load_application(reference)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_syntax_error_is_one_problem_at_its_line(project):
    (project / "app.py").write_text(f"{ONE}def broken(:\n")
    (found,) = problems(".")
    assert found.code == "app.syntax"
    assert str(found.place) == f"{project}/app.py:3"


def test_an_error_in_another_file_of_the_project_is_shown_there(project):
    (project / "other.py").write_text("\n\nraise ValueError('no such luck')\n")
    (project / "app.py").write_text(f"{ONE}import other\n")
    (found,) = problems(".")
    assert found.message == "ValueError: no such luck"
    assert str(found.place) == f"{project}/other.py:3"


def test_a_missing_module_and_an_exit_are_problems(project):
    (project / "app.py").write_text(f"{ONE}import surely_not_there\nraise SystemExit(3)\n")
    assert [(found.code, found.place.line) for found in problems(".")] == [
        ("app.import", 3),
        ("app.raised", 4),
    ]


def test_whatever_an_import_raises_is_a_problem(project):
    silent = "class Silent(BaseException):\n    def __str__(self):\n        raise ValueError\n"
    (project / "app.py").write_text(f"{ONE}{silent}raise Silent\n")
    (found,) = problems("app")
    assert (found.code, found.message) == ("app.raised", "Silent")


def test_what_an_application_prints_is_no_part_of_the_answer(project, capsys):
    (project / "app.py").write_text(f'{ONE}print("hello")\n')
    load_application(".")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "hello\n")


def test_a_module_that_raises_is_one_problem(project):
    (project / "app.py").write_text("1 / 0\n")
    (found,) = problems("app")
    assert found.message == "ZeroDivisionError: division by zero"


def test_future_annotations_are_kept_when_a_file_is_run_again(project):
    (project / "app.py").write_text(
        "from __future__ import annotations\n"
        "from penstock import App, record\n"
        "app = App('later')\n"
        "@record(key='other')\n"
        "class Word:\n"
        "    word: str\n"
        "    not_yet: Later\n"
        "words = app.stream('words', Word)\n"
        "1 / 0\n"
    )
    assert [found.code for found in problems(".")] == [
        "record.annotation",
        "record.key-unknown",
        "app.raised",
    ]


@pytest.mark.parametrize(
    "line",
    ['F.hour("at")', 'F.col("at")', 'F.pandas_udf("double")(lambda values: values)'],
)
def test_what_needs_spark_before_there_is_one_is_said_to_belong_into_the_function(
    project, line, monkeypatch
):
    # Another test of this process may have left a session.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    (project / "app.py").write_text(f"from pyspark.sql import functions as F\n{ONE}it = {line}\n")
    (problem,) = problems(".")
    assert (problem.code, problem.place.line) == ("app.raised", 4)
    assert "create columns inside the function" in problem.hint
    assert "DoubleType()" in problem.hint


def test_an_assertion_of_the_application_itself_says_nothing_of_spark(project):
    (project / "app.py").write_text(f"{ONE}assert not app\n")
    (problem,) = problems(".")
    assert problem.hint == ""
