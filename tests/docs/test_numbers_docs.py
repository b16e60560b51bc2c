"""The ten lines at the top of docs/numbers.md are classified as the page says."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import regex
from helpers import ROOT

import logparse
from analysis.present.words import words
from analysis.run.checks.self_checks import SELF_CHECKS
from analysis.run.run import Run

TEXT = (ROOT / "docs/numbers.md").read_text(encoding="utf-8")
SHOWN = regex.findall(r"```log\n(.*?)```", TEXT, regex.DOTALL)[0].splitlines()
CLASSES = dict(regex.findall(r"^\| (\d+) \| (.+?) \|", TEXT, regex.MULTILINE))
RESULTS = dict(regex.findall(r"^\| (\d+) \| .+? \| (.+) \|$", TEXT, regex.MULTILINE))
BANNER, END = SHOWN[8], "-------------------- end of arguments ---------------------"
EVERY = timedelta(seconds=5)
RESUMED_AT, LAST_STEP = 30, 60


def step_of(line: str) -> tuple[int, datetime] | None:
    """Step and clock of a step line."""
    found = regex.match(r" \[(.{19})\] iteration +(\d+)/", line)
    return found and (int(found[2]), datetime.fromisoformat(found[1]))


def whole_log() -> tuple[list[str], list[int]]:
    """The log with the step lines that the page omits, and the line number of each line that it shows."""
    lines, places, step, clock = [BANNER], [], 0, datetime(2025, 6, 17, 9)

    def fill(last: int) -> None:
        nonlocal step, clock
        while step < last:
            step, clock = step + 1, clock + EVERY
            stepped = regex.sub(r"iteration +\d+/", f"iteration {step:8d}/", SHOWN[2])
            lines.append(regex.sub(r"\[.{19}\]", f"[{clock}]", stepped))

    for line in SHOWN:
        if read := step_of(line):
            fill(read[0] - 1)
            step, clock = read
        elif "saved checkpoint" in line:
            fill(RESUMED_AT)
        lines.append(line)
        places.append(len(lines))
        if line == BANNER:
            lines += [SHOWN[0], END]
            step, clock = RESUMED_AT, step_of(SHOWN[9])[1] - 3 * EVERY
        elif line == SHOWN[0]:
            lines.append(END)
    fill(LAST_STEP)
    return lines, places


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> tuple[Run, list[int]]:
    path: Path = tmp_path_factory.mktemp("numbers") / "ten.log"
    lines, places = whole_log()
    path.write_text("\n".join(lines) + "\n")
    return logparse.analyze(str(path)), places


def row_at(run: Run, line: int) -> dict[str, object]:
    """What the frames of a run have of a line; empty where it is in none."""
    frames = {"steps": run.steps, "settings": run.log.settings, "starts": run.log.starts, **run.log.records}
    found = {
        name: frame.filter(pl.col("line_number") == line).row(0, named=True)
        for name, frame in frames.items()
        if frame.height and line in frame["line_number"]
    }
    assert len(found) <= 1
    return {"frame": next(iter(found), None), **next(iter(found.values()), {})}


def test_the_page_classifies_ten_lines():
    assert len(SHOWN) == len(CLASSES) == 10
    assert len(set(CLASSES.values())) == 10


@pytest.mark.parametrize(
    ("number", "name", "frame"),
    [
        (1, "setting", "settings"),
        (2, "warm-up", "steps"),
        (3, "step line, used", "steps"),
        (4, "step line with a stall", "steps"),
        (5, "checkpoint save", "events"),
        (6, "evaluation", "evaluations"),
        (7, "not read", None),
        (8, "torn line", None),
        (9, "restart banner", "starts"),
        (10, "replayed step", "steps"),
    ],
)
def test_a_line_is_in_the_frame_of_its_class(example, number, name, frame):
    run, places = example
    assert CLASSES[str(number)] == name
    assert row_at(run, places[number - 1])["frame"] == frame


def test_excluded_reasons_are_those_of_the_page(example):
    run, places = example
    given = {
        number: None if found[1] == "null" else found[1].strip("`")
        for number, text in RESULTS.items()
        if (found := regex.search(r"`excluded_reason` (\S+)", text))
    }
    assert given == {n: row_at(run, places[int(n) - 1])["excluded_reason"] for n in ("2", "3", "4", "10")}


def test_setting_event_evaluation_and_start_are_those_of_the_page(example):
    run, places = example
    fact = run.context.facts["global_batch_size"]
    assert (fact.value, fact.origin.line) == (32, places[0])
    event = row_at(run, places[4])
    assert RESULTS["5"] == f"event `{event['kind']}` at step {event['step']}"
    assert RESULTS["6"] == f"evaluation of step {row_at(run, places[5])['step']}"
    assert RESULTS["9"] == f"a new start, `segment` {row_at(run, places[9])['segment']}"


def test_the_torn_line_is_counted(example):
    assert example[0].log.coverage.torn_lines == 1


def test_every_excluded_reason_has_a_rule():
    table = TEXT.partition("| `excluded_reason` | rule |")[2].partition("\n\n")[0]
    first_cells = regex.findall(r"^\| (`.+?) \|", table, regex.MULTILINE)
    reasons = regex.findall(r"`(\w+)`", " ".join(first_cells))
    assert sorted(reasons) == sorted(words("en")["reasons"])


def test_every_self_check_is_explained():
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    rows = regex.findall(r"^\| `(\w+)` \| .* \| .* \|$", text.split("## Self-checks")[1], regex.MULTILINE)
    assert rows == [check.code for check in SELF_CHECKS]
