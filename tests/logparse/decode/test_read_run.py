"""Files to frames: what is said where nothing was found, and what no line may bring to a terminal."""

import gzip
import lzma
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from helpers import arguments_dump, megatron_line, megatron_log, run_logparse

from analysis.present.words import say
from logparse.decode.read_run import ParsedLog, read_run
from logparse.errors import NoStepLineError
from logparse.inputs.run_names import run_names

PACKED = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_file_cut_before_its_first_line_says_that_it_is_cut(tmp_path, kind):
    path = tmp_path / "run.log"
    path.write_bytes(PACKED[kind](b"text\n" * 1000)[:12])
    with pytest.raises(NoStepLineError) as caught:
        read_run([str(path)])
    assert caught.value.problem.startswith(f"the log is empty; {path} is truncated or corrupted (")


def test_a_file_cut_before_its_first_step_line_says_that_it_is_cut(tmp_path):
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(b"text\n" * 1000)[:-6])
    with pytest.raises(NoStepLineError) as caught:
        read_run([str(path)])
    first = caught.value.problem
    assert first.startswith(f"no step line found; {path} is truncated or corrupted (")


# Each with what is left of it between two letters.
OBEYED = {
    "colour": ("\x1b[31m", ""),
    "cursor": ("\x1b[2J\x1b[1;1H", ""),
    "8-bit sequence": ("\x9b31m", ""),
    "title": ("\x1b]0;title\x07", ""),
    "link": ("\x1b]8;;http://x\x1b\\", ""),
    "title without an end": ("\x1b]0;title", "]0;title"),
    "bell and backspace": ("\x07\x08\x7f", ""),
    "next line, form feed": ("\x85\x0b\x0c", ""),
    "right to left": ("\u202e\u2066\u200f", ""),
}


def read_text(folder: Path, text: str) -> ParsedLog:
    path = folder / "run.log"
    path.write_text(text)
    return read_run([str(path)])


@pytest.mark.parametrize("kind", OBEYED)
def test_what_a_terminal_obeys_reaches_no_frame(tmp_path, kind):
    sign, left = OBEYED[kind]
    pairs = {f"moon{sign}phase": "0.5", "params norm": f"x{sign}y"}
    log = read_text(tmp_path, arguments_dump({"data_path": f"a{sign}b"}) + megatron_line(1, pairs=pairs) + "\n")
    assert log.settings["value"].to_list() == [f"a{left}b"]
    assert log.coverage.unread_labels == {f"moon{left}phase": 1}
    assert log.steps["loss"].to_list() == [2.345678]
    (note,) = log.notes
    assert (note.code, note.level) == ("value_malformed", "warning")
    expected = {"source": str(tmp_path / "run.log"), "line_number": 4, "label": "params norm", "text": f"x{left}y"}
    assert note.fields == expected
    place = f"{tmp_path / 'run.log'}, line 4"
    assert say(note) == f"{place}: 'params norm' is 'x{left}y', which is not a valid number"


def test_nothing_printed_moves_the_cursor(tmp_path):
    signs = "".join(sign for sign, _ in OBEYED.values())
    (tmp_path / "run\x1b[2J\u202e.log").write_text(
        megatron_log(6, recompute_granularity=f"full{signs}")
        + megatron_line(7, pairs={f"moon{signs}phase": "0.5", f"sun{signs}": "x", "params norm": f"x{signs}\ry"})
        + "\n"
    )
    for options in ([], ["--json"]):
        done = run_logparse("analyze", ".", *options, cwd=tmp_path)
        shown = (done.stdout + done.stderr).replace("\n", "")
        assert done.returncode == 0
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf")]


def test_tabs_and_progress_bars_stay(tmp_path):
    log = read_text(tmp_path, f"50%\r{megatron_line(1)}\n" + arguments_dump({"data_path": "a\tb"}))
    assert log.steps["step"].to_list() == [1]
    assert log.settings["value"].to_list() == ["a\tb"]


def test_versions_of_software_come_with_their_line(tmp_path):
    report = "torch version .................... 2.1.0\nascend_cann version .............. 8.0.RC2\n"
    (tmp_path / "run.log").write_text(report + megatron_log())
    found = read_run([str(tmp_path / "run.log")]).versions
    assert {name: (version.value, version.line_number) for name, version in found.items()} == {
        "torch": ("2.1.0", 1),
        "cann": ("8.0.RC2", 2),
    }


@pytest.mark.parametrize(
    ("logs", "names"),
    [
        (["a/run.log", "b/train.log.gz"], ["run", "train"]),
        (["a/run.log", "b/run.log", "c/other.txt"], ["a", "b", "other"]),
        (["a/run.log", "a/run.log.gz"], ["a", "a-2"]),
        (["run.log", "../run.log", "a/run.log"], ["run", "run-2", "a"]),
        (["-"], ["stdin"]),
        (["runs/a/*.log", "runs/b/*.log"], ["a", "b"]),
        (["r1/logs/run.log", "r2/logs/run.log"], ["r1", "r2"]),
        (["x/1/run.log", "x/2/run.log", "y/1/run.log"], ["x-1", "x-2", "y-1"]),
        (["run.log", "r1/run.log", "b/r1/run.log"], ["run", "r1", "b-r1"]),
    ],
)
def test_runs_are_named_after_their_log_or_the_folder_that_tells_them_apart(logs, names):
    assert run_names([[log] for log in logs]) == names
