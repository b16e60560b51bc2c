"""Logs of failed runs end as they should: whole ones with cases/truth.toml, those of a few lines with excerpts.txt."""

import tomllib
from pathlib import Path

import pytest
import regex
from helpers import megatron_log

from analysis.present.parts import ScreenRows
from analysis.present.views.ending import ending_parts, headline
from logparse.decode.read_run import diagnose_run

HERE = Path(__file__).parent
CASES = HERE / "cases"
TRUTH = tomllib.loads((CASES / "truth.toml").read_text(encoding="utf-8"))
EXCERPTS = {
    name: (tomllib.loads(f"truth = {{ {truth} }}")["truth"], log)
    for name, truth, log in (
        excerpt.split("\n", 2) for excerpt in (HERE / "excerpts.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
    )
}
LEAST = 80
NAMES = ("state", "family", "line", "rank", "local_rank", "host", "remedy", "detail", "grade", "signature", "exit_code")
MORE_NAMES = ("step", "same_on", "repeated", "restart_helps", "peer", "process", "collect", "reported_on", "text")


def expanded(log):
    """``log`` with six steps for ``<steps>``, nine lines for ``<9 times> a``, and its carriage returns."""
    log = regex.sub(r"(?m)^<(\d+) times> (.*\n)", lambda match: match[2] * int(match[1]), f"{log}\n")
    return log.replace("<steps>\n", megatron_log()).replace("<cr>", "\r")


def described(ending):
    """What an ending says, by the names that the truth and the excerpts use."""
    suspects = ending.suspects
    who = {"rank": ending.rank, "local rank": ending.local_rank, "host": ending.host}
    return {name: getattr(ending, name) for name in (*NAMES, *MORE_NAMES)} | {
        "who": ", ".join(f"{kind} {value}" for kind, value in who.items() if value is not None) or "nobody",
        "cause_rank": ending.cause and ending.cause.rank,
        "failed": ending.failed,
        "figures": dict(ending.figures),
        "ranks": list(ending.same_ranks),
        "hosts": list(ending.same_hosts),
        "suspects": [suspect.rank for suspect in suspects if suspect.rank is not None],
        "suspected_ranks": [list(suspect.ranks) for suspect in suspects],
        "attempts": ending.attempts_in_log,
        "frames": [f"{call.path}, line {call.line}, in {call.name}: {call.code}" for call in ending.frames],
        "evidence": [one.line for one in ending.evidence],
        "quotes": [one.text for one in ending.evidence],
        "novel": [one.line for one in ending.evidence if one.role == "novel"],
        "unfinished_save": ending.unfinished_save and ending.unfinished_save.line,
        "printed_last": ending.printed_last and [ending.printed_last.line, ending.printed_last.text],
        "headline": headline(ending),
    }


def shown(ending):
    """What the screen says below its first line."""
    rows = (part.rows for part in ending_parts(ending) if isinstance(part, ScreenRows))
    return " ".join(f"{row.label} {' '.join(row.clauses)}" for some in rows for row in some)


def is_right(name, value, truth):
    """Of a line and a remedy several may be right; what is not known is "none"."""
    if name in ("line", "remedy") and isinstance(truth, list):
        return value in truth
    return value is None if truth == "none" else value == truth


@pytest.mark.parametrize("name", TRUTH)
def test_a_case_ends_as_the_truth_says(name):
    """What ``missed`` names is not read yet: take it out of the truth as soon as it is."""
    truth = dict(TRUTH[name])
    missed = set(truth.pop("missed", ()))
    truth.pop("missed_because", None)
    if "ranks" not in truth:
        truth.setdefault("rank", "none")
    got = described(diagnose_run([str(CASES / f"{name}.log")]))
    wrong = {key: (got[key], value) for key, value in truth.items() if not is_right(key, got[key], value)}
    assert wrong.keys() == missed, wrong


def test_each_log_has_a_truth():
    assert {path.stem for path in CASES.glob("*.log")} == TRUTH.keys()
    assert len(TRUTH) >= LEAST


@pytest.mark.parametrize("name", EXCERPTS)
def test_an_excerpt_is_read_as_it_says(name, tmp_path):
    truth, log = EXCERPTS[name]
    path = tmp_path / "run.log"
    path.write_text(expanded(log), encoding="utf-8", newline="")
    ending = diagnose_run([str(path)])
    screen, got = shown(ending), described(ending)
    assert [text for text in truth.get("shows", ()) if text not in screen] == []
    asked = truth.keys() - {"shows"}
    assert {key: got[key] for key in asked if not is_right(key, got[key], truth[key])} == {}
