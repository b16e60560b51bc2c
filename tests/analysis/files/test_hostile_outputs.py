"""Outputs that must do no harm: to files of others, exit codes, terminals, spreadsheets, machines with limits."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest
from helpers import PROGRAM, ROOT, megatron_log, run_logparse, run_process, sweep_after
from polars.testing import assert_frame_equal

from analysis.files.own_files import LIST, LOCK, UNFINISHED, OwnFiles, list_of, read_list, remove_temporary
from analysis.files.result_folder import ResultFolder
from analysis.history.folder import Folder
from analysis.history.seal import DamagedError
from analysis.history.store import History
from analysis.spreadsheet import harmless, without_formulas
from logparse.errors import InputError, LogparseError, UsageError
from logparse.language import tr, visible

pytestmark = pytest.mark.usefixtures("analysed_once")

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log())
    return tmp_path


def analyze(folder, *arguments):
    return run_logparse("analyze", "run.log", "--no-charts", "-q", *arguments, cwd=folder)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Files of others.


def test_what_an_earlier_command_wrote_is_listed(folder):
    assert analyze(folder, "-o", "out").returncode == 0
    listed = read_list((folder / "out" / LIST).read_bytes())
    assert set(listed) == set(files(folder / "out")) - {LIST}
    assert set(listed.values()) == {"analyze"}
    assert not (folder / "out" / LOCK).exists()


@pytest.mark.parametrize("name", ["steps.jsonl", "charts/mine.png", "runs/other/report.html", "index.html"])
def test_a_file_of_others_stays(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    assert analyze(folder, "-o", ".", "--force").returncode == 0
    assert analyze(folder, "-o", ".", "--force", "--tables", "csv").returncode == 0
    assert (folder / name).read_text() == "mine"
    assert (folder / "steps.csv").exists()
    assert not (folder / "steps.parquet").exists()


@pytest.mark.parametrize("shape", ["file", "link", "folder"])
def test_what_is_in_the_way_is_named_and_nothing_is_written(folder, shape):
    place, target = folder / "out" / "steps.parquet", folder / "target"
    place.parent.mkdir()
    target.write_text("theirs")
    if shape == "folder":
        place.mkdir()
    elif shape == "link":
        place.symlink_to(target)
    else:
        place.write_text("theirs")
    done = analyze(folder, "-o", "out", "--force")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "logparse: out/steps.parquet is in the way: logparse did not write it\n"
        "  try:   move it, or give another folder with -o\n"
    )
    assert [path.name for path in place.parent.iterdir()] == ["steps.parquet"]
    assert target.read_text() == "theirs"


def test_a_link_on_the_way_is_not_followed(folder):
    (folder / "elsewhere").mkdir()
    (folder / "out").mkdir()
    (folder / "out/charts").symlink_to(folder / "elsewhere")
    done = run_logparse("analyze", "run.log", "-o", "out", "--chart-format", "json", "--force", cwd=folder)
    assert (done.returncode, "out/charts is in the way" in done.stderr) == (2, True)
    assert list((folder / "elsewhere").iterdir()) == []


def test_an_input_is_never_replaced(folder):
    assert analyze(folder, "-o", "out", "--tables", "jsonl").returncode == 0
    before = files(folder / "out")
    for arguments in (("out/steps.jsonl",), ("run.log", "out/st*.jsonl")):
        done = run_logparse("analyze", *arguments, "-o", "out", "--force", "-q", cwd=folder)
        assert done.returncode == 2
        assert (
            "logparse: the input out/steps.jsonl would be overwritten\n  where: out/steps.jsonl\n  try:" in done.stderr
        )
    assert files(folder / "out") == before


def test_an_input_by_another_name_is_one_too(folder):
    (folder / LIST).write_bytes(list_of({"run.log": "analyze"}))
    (folder / "link.log").symlink_to("run.log")
    done = run_logparse("analyze", "link.log", "-o", ".", "--force", "-q", cwd=folder)
    assert (done.returncode, "the input link.log would be overwritten" in done.stderr) == (2, True)
    assert (folder / "run.log").exists()


@pytest.mark.parametrize("forced", [[], ["--force"]])
def test_an_input_that_is_called_as_our_list_is_never_replaced(folder, forced):
    (folder / "own").mkdir()
    log = folder / "own" / LIST
    log.write_text(megatron_log())
    done = run_logparse("analyze", f"own/{LIST}", "-o", "own", "-q", *forced, cwd=folder)
    assert (done.returncode, f"the input own/{LIST} would be overwritten" in done.stderr) == (2, True)
    assert log.read_text() == megatron_log()


@pytest.mark.parametrize(
    "forged",
    [
        b"\xff",
        b"[]",
        b"{}",
        b'{"files": ["../precious"]}',
        b'{"files": {"../precious": "analyze", "/etc/hostname": "analyze", "a/../../precious": "analyze"}}',
        b"[" * 100_000,
    ],
    ids=range(6),
)
def test_a_forged_list_leads_nowhere(folder, forged):
    (folder / "precious").write_text("mine")
    (folder / "out").mkdir()
    (folder / "out" / LIST).write_bytes(forged)
    assert read_list(forged) == {}
    assert analyze(folder, "-o", "out", "--force").returncode == 0
    assert (folder / "precious").read_text() == "mine"


def test_listed_files_behind_a_link_stay(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.png").write_text("theirs")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/charts").symlink_to(tmp_path / "elsewhere")
    OwnFiles(tmp_path / "out", {"charts/a.png": "analyze"}).remove(["charts/a.png"])
    assert (tmp_path / "elsewhere/a.png").read_text() == "theirs"


def test_commands_clear_only_what_they_wrote_themselves(folder):
    assert analyze(folder, "-o", "out").returncode == 0
    before = set(files(folder / "out"))
    (folder / "b.log").write_text(megatron_log().replace("(ms): 100", "(ms): 101"))
    done = run_logparse("compare", "run.log", "b.log", "-o", "out", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert set(files(folder / "out")) == before | {"report.html"}


def test_a_gate_that_cannot_answer_removes_nothing(folder):
    out = folder / "out"
    out.mkdir()
    (out / "junit.xml").write_text("theirs")
    done = run_logparse("gate", "--baseline", "no", "--candidate", "no", "-o", "out", "--force", cwd=folder)
    assert (done.returncode, "out/junit.xml is in the way" in done.stderr) == (2, True)
    assert files(out) == {"junit.xml": b"theirs"}


def test_a_draft_does_not_replace_its_log(folder):
    before = (folder / "run.log").read_text()
    done = run_logparse("formats", "suggest", "run.log", "-o", "run.log", "--force", cwd=folder)
    assert (done.returncode, "the input run.log would be overwritten" in done.stderr) == (2, True)
    assert (folder / "run.log").read_text() == before


def test_an_export_does_not_replace_a_record(folder):
    assert run_logparse("record", "run.log", "--release", "1", "--history", "h", cwd=folder).returncode == 0
    (record,) = (folder / "h/summary").rglob("*.parquet")
    before = record.read_bytes()
    done = run_logparse("history", "export", str(record), "--history", "h", "--force", cwd=folder)
    assert (done.returncode, "would be overwritten" in done.stderr) == (2, True)
    assert record.read_bytes() == before


# Two at once.


def test_two_commands_do_not_write_into_one_folder(folder):
    (folder / "out").mkdir()
    with (folder / "out" / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = analyze(folder, "-o", "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "another logparse command is writing into out\n  try:   wait until it ends" in done.stderr
    assert [path.name for path in (folder / "out").iterdir()] == [LOCK]
    # A lock that a killed command left holds nobody.
    assert analyze(folder, "-o", "out").returncode == 0
    assert not (folder / "out" / LOCK).exists()


def test_the_second_of_two_does_not_overwrite_the_first(tmp_path):
    first, second = ResultFolder(str(tmp_path / "out")), ResultFolder(str(tmp_path / "out"))
    for one in (first, second):
        one.check(force=False)

    def write(out):
        with out.opened("analyze") as folder:
            (folder / "report.html").write_text("whole")

    write(first)
    with pytest.raises(UsageError, match=r"report\.html exists"):
        write(second)


def test_what_a_killed_command_left_is_cleared(folder):
    left = folder / "out" / f"{UNFINISHED}abc" / "charts"
    left.mkdir(parents=True)
    (left / "a.png").write_text("half")
    assert analyze(folder, "-o", "out").returncode == 0
    assert not left.exists()


def test_a_failure_leaves_what_was_there(tmp_path):
    out = ResultFolder(str(tmp_path))
    with out.opened("analyze") as folder:
        (folder / "a").write_text("old")
    before = files(tmp_path)

    def fail():
        with out.opened("analyze", force=True) as folder:
            (folder / "a").write_text("new")
            raise InputError("stop")

    with pytest.raises(InputError, match="stop"):
        fail()
    assert files(tmp_path) == before


def test_sigterm_leaves_nothing_behind(folder):
    out = folder / "out"
    out.mkdir()
    command = [PROGRAM, "analyze", "run.log", "-o", "out", "-q", "--chart-format", "html,png"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not any(out.glob(f"{UNFINISHED}*/*")) and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert (process.returncode, said) == (-signal.SIGTERM, b"")
    assert list(out.iterdir()) == []


def test_a_signal_while_what_is_temporary_is_removed_leaves_nothing(tmp_path, monkeypatch):
    """The handler of signals does what the interrupted removal did not."""

    def cleanup(temporary: tempfile.TemporaryDirectory) -> None:
        temporary._finalizer.detach()
        remove_temporary()

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", cleanup)
    with ResultFolder(str(tmp_path)).opened("analyze") as folder:
        (folder / "page.html").write_text("")
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", LIST}


# Exit codes: 1 is a verdict.


@needs_full
@pytest.mark.parametrize(
    ("arguments", "streams"),
    sweep_after(
        3,
        [
            (["run.log", "-o", "out"], ("stdout",)),
            (["run.log"], ("stderr",)),
            (["none.log"], ("stdout", "stderr")),
            *((arguments, ("stdout",)) for arguments in (["run.log"], ["run.log", "--json"], ["--help"])),
            *((arguments, ("stderr",)) for arguments in (["run.log", "-o", "out"], ["--help"])),
            (["--nosuch"], ("stdout", "stderr")),
        ],
    ),
    ids=" ".join,
)
def test_a_full_device_is_no_verdict(folder, arguments, streams):
    with FULL.open("wb") as full:
        given = {name: full if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
        command = [PROGRAM, "analyze", "--no-charts", *arguments]
        done = subprocess.run(command, cwd=folder, check=False, **given)
    assert b"Traceback" not in (done.stderr or b"")
    silent = streams == ("stderr",) and arguments in (["run.log"], ["--help"])
    assert done.returncode == (0 if silent else 2)


@pytest.mark.parametrize(
    ("closed", "log", "code"),
    sweep_after(
        3,
        [
            (">&-", "run.log", 0),
            ("2>&-", "none.log", 2),
            ("<&- >&- 2>&-", "run.log", 0),
            (">&-", "none.log", 2),
            ("2>&-", "run.log", 0),
            (">&- 2>&-", "run.log", 0),
            (">&- 2>&-", "none.log", 2),
            ("<&- >&- 2>&-", "none.log", 2),
        ],
    ),
)
def test_a_closed_stream_is_no_verdict(folder, closed, log, code):
    shell = f"exec {PROGRAM} analyze {log} -o out --no-charts {closed}"
    assert subprocess.run(["bash", "-c", shell], cwd=folder, check=False).returncode == code
    if not code:
        # Nothing that was printed went into a file that was opened under the number of the stream.
        assert pl.read_parquet(folder / "out/steps.parquet").height == 6


@pytest.mark.parametrize("arguments", sweep_after(1, ["analyze --help", "--help", "--version"]))
def test_help_into_a_closed_pipe_is_no_verdict(folder, arguments):
    shell = f"set -o pipefail; {PROGRAM} {arguments} | true"
    assert subprocess.run(["bash", "-c", shell], cwd=folder, check=False).returncode == 0


# Limits.


def limited(folder, limit, value, *arguments, **environment):
    return subprocess.run(
        [PROGRAM, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
        preexec_fn=lambda: resource.setrlimit(limit, (value, value)),
    )


@pytest.mark.parametrize("gigabytes", sweep_after(1, [4, 2]))
def test_where_memory_is_limited_charts_are_not_drawn(folder, gigabytes):
    done = limited(folder, resource.RLIMIT_AS, gigabytes << 30, "analyze", "run.log", "-o", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "logparse: charts are missing: the process that draws them could not run\n"
        "  try:   raise the limits of memory and open files (ulimit -v, -n), and repeat with --force\n"
    )
    assert {path.suffix for path in (folder / "out/charts").iterdir()} == {".json"}
    assert "vegaEmbed" in (folder / "out/report.html").read_text()


def test_too_little_memory_is_no_verdict(folder):
    done = limited(folder, resource.RLIMIT_AS, 1 << 30, "analyze", "run.log")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("logparse: the memory limit is 1.1 GB\n  try:   raise it to 1.5 GB")


def test_few_open_files_are_no_traceback(folder):
    done = limited(folder, resource.RLIMIT_NOFILE, 16, "analyze", "run.log", "-o", "out")
    assert done.returncode in (0, 2)
    assert ("Traceback" in done.stderr, "internal error" in done.stderr) == (False, False)


def test_python_may_drop_docstrings(folder):
    done = run_process("analyze", "--help", cwd=folder, command=(sys.executable, "-OO", "-m", "logparse"))
    assert "Analyze a run" in done.stdout


@pytest.mark.slow
def test_python_draws_without_docstrings(folder):
    """Python compiles every package anew for this."""
    done = run_process("analyze", "run.log", "-o", "out", "-q", cwd=folder, PYTHONOPTIMIZE="2")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_step_number_beyond_all_is_no_fault(tmp_path):
    lines = megatron_log().splitlines()
    lines[-1] = lines[-1].replace("iteration        6/", "iteration 512000000000000000000000000/")
    assert "512000" in lines[-1]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    assert analyze(tmp_path).returncode == 0


# Names and contents that no table or page can hold.


@pytest.mark.parametrize("arguments", [("analyze", "run.log"), ("trend", "--history", "h")], ids=" ".join)
def test_a_folder_whose_name_is_not_utf8_is_refused(folder, arguments):
    done = run_logparse(*arguments, "-o", os.fsdecode(b"o\xff"), cwd=folder)
    assert done.returncode == 2
    assert "the name of the folder 'o\\udcff' is not UTF-8\n  try:   give another folder" in done.stderr


@pytest.mark.parametrize("option", ["--config", "--format-file", "project"])
def test_toml_may_be_nested_deeply(folder, option):
    name = "logparse.toml" if option == "project" else "deep.toml"
    (folder / name).write_text("x = " + "[" * 20_000 + "]" * 20_000)
    given = () if option == "project" else (option, name)
    done = run_logparse("analyze", "run.log", *given, cwd=folder)
    assert (done.returncode, "not a TOML file" in done.stderr, "  try:" in done.stderr) == (2, True, True)


def test_strangers_in_a_history_do_not_shut_it(folder):
    assert run_logparse("record", "run.log", "--release", "1", "--history", "h", cwd=folder).returncode == 0
    (record,) = (folder / "h/summary").rglob("*.parquet")
    stray = os.fsencode(folder / "h/summary") + b"/release=\xff"
    Path(os.fsdecode(stray)).mkdir()
    Path(os.fsdecode(stray), record.name).write_bytes(record.read_bytes())
    os.mkfifo(record.with_name("a" * 32 + ".f0fe286a.v3.parquet"))
    done = run_logparse("history", "list", "--history", "h", cwd=folder)
    assert (done.returncode, "its name is not UTF-8" in done.stderr) == (0, True)
    assert "it is not a regular file" in done.stderr
    assert " 1 " in done.stdout


def test_a_pipe_in_a_history_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(DamagedError, match="not a regular file"):
        Folder(tmp_path).get("a.parquet")
    assert History(Folder(tmp_path)).runs().is_empty()


# Terminals.

ESCAPE = "\x1b]0;owned\x07\x1b[31mred\x9b31m\u202e"


def test_what_commands_a_terminal_is_shown_as_its_code():
    assert visible(ESCAPE) == "\\x1b]0;owned\\x07\\x1b[31mred\\x9b31m\\u202e"
    assert visible("吞吐\n\tté") == "吞吐\n\tté"
    assert tr("cannot read {path}: {reason}", path=Path("\x1b"), reason=OSError("\x07")) == "cannot read \\x1b: \\x07"
    assert "\x1b" not in str(LogparseError(ESCAPE, where=ESCAPE, remedy=ESCAPE))


def test_names_do_not_command_the_terminal(folder):
    (folder / "a\x1b[31m.log").write_text(megatron_log())
    out = "o\x1b[31m"
    for extra in ((), ("-v",), ("--markdown",), ("-q",), ("--each",), ("--json",)):
        done = run_logparse("analyze", "a\x1b[31m.log", "--no-charts", "-o", out, "--force", *extra, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
    assert "\x1b" not in run_logparse("analyze", "none\x1b.log", cwd=folder).stderr


def test_a_forged_release_does_not_command_the_terminal(folder):
    assert run_logparse("record", "run.log", "--release", "1", "--history", "h", cwd=folder).returncode == 0
    for table in ("summary", "steps"):
        (folder / f"h/{table}/release=1").rename(folder / f"h/{table}/release=%1B[31m")
    for command in (("history", "list"), ("trend",), ("trend", "--markdown")):
        done = run_logparse(*command, "--history", "h", cwd=folder)
        assert "\x1b" not in done.stdout + done.stderr


def test_the_title_of_a_format_does_not_command_the_terminal(folder):
    drafted = run_logparse("formats", "suggest", "run.log", cwd=folder)
    assert "\x1b" not in drafted.stdout
    (folder / "f.toml").write_text(drafted.stdout.replace('title = "', 'title = "\\u001b[31m', 1))
    for arguments in (("formats", "show", "f.toml"), ("formats", "test", "f.toml", "run.log")):
        done = run_logparse(*arguments, cwd=folder)
        assert "\x1b" not in done.stdout + done.stderr


# Spreadsheets.


def test_text_is_no_formula_and_numbers_stay():
    frame = pl.DataFrame({"a": ["=1+1", "+1", "-1", "@x", "\tx", "x=1", "", None], "b": [-1.5, *[0.0] * 7]})
    written = without_formulas(frame)
    assert written["a"].to_list() == ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "x=1", "", None]
    assert_frame_equal(written.select("b"), frame.select("b"))
    assert (harmless("=1"), harmless("1")) == ("'=1", "1")


def test_csv_has_no_formula(folder):
    (folder / "=cmd.log").write_text(megatron_log())
    done = run_logparse("analyze", "--each", "=cmd.log", "--no-charts", "-o", "out", "--tables", "csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in ("runs.csv", "steps.csv"):
        text = (folder / "out" / name).read_text()
        assert "'=cmd" in text
        assert not [line for line in text.splitlines() if line.startswith("=")]
    assert run_logparse("record", "=cmd.log", "--release", "@1", "--history", "h", cwd=folder).returncode == 0
    assert run_logparse("history", "export", "e.csv", "--history", "h", cwd=folder).returncode == 0
    assert ",'@1" in (folder / "e.csv").read_text()
    assert json.loads(run_logparse("analyze", "=cmd.log", "--json", cwd=folder).stdout)["runs"][0]["name"] == "=cmd"


def test_the_script_of_the_page_writes_no_formula():
    assert "/^[=+\\-@\\t\\r]/" in (ROOT / "analysis/report/page.js").read_text(encoding="utf-8")
