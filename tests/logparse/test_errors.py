"""The errors users meet: what they say, how they end the program, and that they are caught in one place."""

import inspect

import pytest
from helpers import ROOT

from logparse import errors
from logparse.errors import (
    InputError,
    InsufficientDataError,
    LogparseError,
    NoStepLineError,
    SeveralRunsError,
    StrictError,
    UsageError,
    unknown_name,
)

KINDS = {
    UsageError: 2,
    InputError: 2,
    SeveralRunsError: 2,
    StrictError: 2,
    NoStepLineError: 3,
    InsufficientDataError: 4,
}


def test_message_says_problem_where_and_remedy():
    error = InputError("it is broken", where="run.log, line 7", remedy="mend it")
    assert str(error) == "it is broken\n  where: run.log, line 7\n  try:   mend it"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "it is broken"),
        ({"where": "run.log"}, "it is broken\n  where: run.log"),
        ({"remedy": "mend it"}, "it is broken\n  try:   mend it"),
    ],
)
def test_what_is_unknown_takes_no_line(given, text):
    assert str(UsageError("it is broken", **given)) == text


@pytest.mark.parametrize(("kind", "code"), KINDS.items(), ids=lambda v: getattr(v, "__name__", str(v)))
def test_exit_code(kind, code):
    assert kind.exit_code == code
    assert issubclass(kind, LogparseError)


def test_tree_in_the_docstring_is_the_tree():
    defined = {c.__name__: c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__}
    del defined["LogparseError"]
    assert {kind.__name__ for kind in KINDS} == set(defined)
    for name, kind in defined.items():
        (line,) = [line for line in errors.__doc__.splitlines() if f" {name} " in line]
        assert f"exit {kind.exit_code}:" in line


def test_exit_code_one_is_kept_for_a_regression():
    assert 1 not in KINDS.values()


def test_unknown_name_offers_its_neighbours():
    error = unknown_name("device", "910b9", ["910b", "910b3", "h100"], "see the list")
    assert isinstance(error, UsageError)
    assert error.problem == "unknown device '910b9'"
    assert error.remedy.startswith("did you mean 910b")
    assert "h100" not in error.remedy
    assert error.remedy.endswith("? see the list")


def test_unknown_name_without_neighbours():
    assert unknown_name("device", "zzz", ["910b", "h100"], "see the list").remedy == "see the list"


def test_neighbours_are_written_as_they_are_known():
    assert "did you mean Ascend-910B?" in unknown_name("device", "ascend-910c", ["Ascend-910B"], "x").remedy


def test_expected_errors_are_caught_where_they_are_printed_or_leave_a_process():
    files = [f for package in ("logparse", "analysis") for f in (ROOT / package).rglob("*.py")]
    assert len(files) > 20
    caught = [f.name for f in files if "except LogparseError" in f.read_text(encoding="utf-8")]
    # The gate leaves word for CI, and the Python interface names arguments or shows pseudonyms; all raise it again. A
    # draft that does not read its log is no draft. What a log refuses today, its watcher reads tomorrow.
    drafts = ["draft.py", "formats.py", "read_unknown.py"]
    assert sorted(caught) == sorted(
        ["api.py", "argument_names.py", "cli.py", "engine.py", "gate.py", "mcp.py", "mlflow.py", "refresh.py", *drafts]
    )
