"""Logs of failed runs in our own words end as cases/truth.toml says: which line, what failed, whose, and what to do."""

import tomllib
from pathlib import Path

import pytest

from logparse.decode.read_run import diagnose_run

CASES = Path(__file__).parent / "cases"
TRUTH = tomllib.loads((CASES / "truth.toml").read_text(encoding="utf-8"))
LEAST = 80


def read(name):
    """What the log says, by the names of the truth."""
    ending = diagnose_run([str(CASES / f"{name}.log")])
    return {
        "state": ending.state,
        "family": ending.family,
        "line": ending.line,
        "rank": ending.rank,
        "local_rank": ending.local_rank,
        "ranks": list(ending.same_ranks),
        "host": ending.host,
        "suspects": [suspect.rank for suspect in ending.suspects if suspect.rank is not None],
        "attempts": ending.attempts_in_log,
        "remedy": ending.remedy,
    }


def is_right(name, value, truth):
    """Of a line and a remedy several may be right; those of ranks and suspects are lists themselves."""
    return value in truth if name in ("line", "remedy") and isinstance(truth, list) else value == truth


@pytest.mark.parametrize("name", TRUTH)
def test_a_case_ends_as_the_truth_says(name):
    """What ``missed`` names is not read yet: take it out of the truth as soon as it is."""
    truth = dict(TRUTH[name])
    missed = set(truth.pop("missed", ()))
    truth.pop("missed_because", None)
    if "ranks" not in truth:
        truth.setdefault("rank", None)
    got = read(name)
    wrong = {key: (got[key], value) for key, value in truth.items() if not is_right(key, got[key], value)}
    assert wrong.keys() == missed, wrong


def test_each_log_has_a_truth():
    assert {path.stem for path in CASES.glob("*.log")} == TRUTH.keys()
    assert len(TRUTH) >= LEAST
