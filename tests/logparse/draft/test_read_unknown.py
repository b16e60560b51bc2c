"""A log of an unknown format is read by a draft where its lines look like step lines, and refused elsewhere."""

import json
import time

import pytest
from helpers import run_logparse

LINE = "update {n}: loss {loss:.2f}, time {ms}.5ms"


def write(folder, lines):
    (folder / "run.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def step_lines(line=LINE, first=1, last=40):
    return [line.format(n=n, loss=3 - n / 100, ms=500 + n % 3) for n in range(first, last + 1)]


def analyze(folder, *arguments):
    return run_logparse("analyze", "run.log", *arguments, cwd=folder)


def test_it_is_marked_as_drafted(tmp_path):
    write(tmp_path, ["loading", *step_lines(), "step 40: val loss 2.81"])
    done = analyze(tmp_path, "--json")
    (run,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, run["coverage"]["step_lines"]) == (0, 40)
    assert run["rates"]["steady"]["step_time_ms"] == pytest.approx(501.5)
    (note,) = [note for note in run["notes"] if note["code"] == "format_drafted"]
    assert (note["level"], note["fields"]["n"], note["fields"]["of"]) == ("warning", 40, 40)
    assert "drafted, not verified" in analyze(tmp_path).stdout
    assert "草拟格式，未经验证" in analyze(tmp_path, "--lang", "zh").stdout


def test_no_draft_refuses(tmp_path):
    write(tmp_path, step_lines())
    refused = analyze(tmp_path, "--no-draft")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert [line.strip().partition(":")[0] for line in refused.stderr.splitlines()] == ["logparse", "where", "try"]


@pytest.mark.parametrize(
    "lines",
    [
        step_lines("update {n}: loss {loss:.2f}, time {ms}.5"),
        step_lines("update {n}: loss {loss:.2f}"),
        step_lines("update {n}: time {ms}.5ms"),
        step_lines("Epoch {n}: loss {loss:.2f}, time {ms}.5ms"),
        step_lines("update {n} of loader"),
        [*step_lines(), *step_lines("worker {n} loss {loss:.2f} | {ms} | ms", last=10)],
    ],
    ids=["no unit", "no time", "no loss", "epochs", "no value", "other lines with a loss"],
)
def test_what_is_not_sure_is_refused(tmp_path, lines):
    write(tmp_path, lines)
    assert analyze(tmp_path).returncode == 3


def test_a_time_stamp_is_a_time(tmp_path):
    write(tmp_path, step_lines("2026-03-01 10:00:{n:02},000 | step {n} | loss {loss:.2f} |"))
    done = analyze(tmp_path, "--json")
    assert json.loads(done.stdout)["runs"][0]["rates"]["steady"]["step_time_ms"] == pytest.approx(1000)


def test_other_commands_refuse_an_unknown_format(tmp_path):
    write(tmp_path, step_lines())
    assert run_logparse("formulas", "run.log", cwd=tmp_path).returncode == 3


def test_suggest_ends_with_the_rate(tmp_path):
    write(tmp_path, step_lines())
    shown = run_logparse("formats", "suggest", "run.log", cwd=tmp_path)
    assert shown.stdout.splitlines()[-1] == "# rate with this draft: step time 502 ms"
    written = run_logparse("formats", "suggest", "run.log", "-o", "ours.toml", cwd=tmp_path)
    assert written.stderr.splitlines()[-1] == "rate with this draft: step time 502 ms"
    assert run_logparse("formats", "test", "ours.toml", "run.log", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "text", ["x", " ", "1", "a_", "loss: 2 ", "1 ms ", "{'loss': 2, ", "1/9 [00:01<00:10, 3.2it/s]\r"]
)
def test_a_hostile_line_is_answered_at_once(tmp_path, text):
    write(tmp_path, [f"step {n} loss: {n}.5 {text * (16384 // len(text))}" for n in range(1, 6)])
    begin = time.process_time()
    analyze(tmp_path)
    assert time.process_time() - begin < 1
