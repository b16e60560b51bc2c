"""``logparse diagnose`` and the title of runs that ended: an empty log is refused, used-up data are an end."""

import pytest
from helpers import ROOT, megatron_log, run_logparse

USED_UP = "[exiting program after consuming all available data at iteration 6] datetime: 2026-06-18 16:59:24\n"


@pytest.mark.parametrize(("language", "text"), [("en", "the log is empty"), ("zh", "日志为空")])
def test_an_empty_log_cannot_be_diagnosed(tmp_path, language, text):
    (tmp_path / "run.log").write_text("")
    done = run_logparse("diagnose", "run.log", "--lang", language, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert text in done.stderr


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "ended at step 6 of 500: the data are used up"), ("zh", "在第 6 步结束，共 500 步：数据已用完")],
)
def test_a_run_without_more_data_ended_and_did_not_fail(tmp_path, language, text):
    (tmp_path / "run.log").write_text(megatron_log() + USED_UP)
    shown = run_logparse("analyze", "run.log", "--lang", language, cwd=tmp_path).stdout
    assert shown.splitlines()[1].startswith(text)
    assert "exiting program" not in shown
    diagnosed = run_logparse("diagnose", "run.log", "--lang", language, cwd=tmp_path).stdout
    assert text in diagnosed
    assert "exiting program" in diagnosed


TIMEOUT = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=A) ran for 9 milliseconds"
NOT_ALL = (
    "{0}: RuntimeError: Timed out initializing process group in store based barrier on rank: {0}, "
    "for key: store_based_barrier_key:1 (world_size=8, worker_count=5, timeout=0:30:00)\n"
)
WAIT = f"[rank{{0}}]: [Rank {{0}}] {TIMEOUT}\n"


@pytest.mark.parametrize(
    ("printed", "first"),
    [
        (WAIT.format(3), "failed: rank 3 waited for a missing rank (hypothesis)"),
        (WAIT.format(3) + WAIT.format(5), "failed: ranks 3 and 5 waited for a missing rank (hypothesis)"),
        ("EI0006: x\n[rank1]: EI0006: x\n", "failed: ranks waited for a missing rank (hypothesis)"),
        (
            "ImportError: /env/a.so: undefined symbol: _Z\n",
            "failed: a compiled package does not fit torch or CUDA (certain)",
        ),
        ("ValueError: a\n", "failed: an exception (certain)"),
        ("".join(map(NOT_ALL.format, range(5))), "failed: 3 of 8 ranks did not join (supported)"),
    ],
)
def test_the_first_line_names_the_failure_and_who_reports_it(tmp_path, printed, first):
    (tmp_path / "run.log").write_text(printed)
    assert run_logparse("diagnose", "run.log", cwd=tmp_path).stdout.splitlines()[0] == first


def test_a_process_that_aborts_after_the_last_step_is_shown_with_its_exit_code(tmp_path):
    abort = "[rank1]: Fatal Python error: Aborted\n"
    report = "E1 api.py:8] failed (exitcode: -6) local_rank: 1 (pid: 7) of binary: /env/bin/python\n"
    done = megatron_log() + "[after training is done] datetime: 2025\n"
    (tmp_path / "run.log").write_text(done + abort + report)
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "then rank 1, native code crashed: check the last save" in " ".join(shown.split())
    assert "exit code   -6" in shown
    (tmp_path / "run.log").write_text(done + abort)
    assert "then" not in run_logparse("diagnose", "run.log", cwd=tmp_path).stdout


def test_an_error_after_the_last_step_is_shown_with_its_line(tmp_path):
    full = "OSError: [Errno 28] No space left on device\n"
    (tmp_path / "run.log").write_text(megatron_log() + "[after training is done] datetime: 2025\n" + full)
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "check the last save" in " ".join(shown.split())
    assert f"  after it    line {len(megatron_log().splitlines()) + 2}: OSError" in shown
    assert "  try         " in shown
    assert "error came after the last step" in run_logparse("analyze", "run.log", cwd=tmp_path).stdout


def test_files_that_are_not_one_run_are_answered_one_after_another(tmp_path):
    (tmp_path / "lost.log").write_text(megatron_log() + "[rank3]: ValueError: a\n")
    other = str(ROOT / "fixtures/nemo-bar/gpt-1.x/run.log")
    shown = run_logparse("diagnose", "lost.log", other, cwd=tmp_path).stdout.splitlines()
    answers = ["lost", "failed at step 6 of 500: rank 3, an exception (certain)", "run"]
    assert [line for line in shown if line in answers] == answers
    assert shown[shown.index("run") + 1] == "cut off or running: no failure found"
    lines = run_logparse("diagnose", "lost.log", other, "-q", cwd=tmp_path).stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["lost", "run"]


@pytest.mark.parametrize("first", [True, False])
def test_files_with_and_without_validation_in_their_epochs_are_read_at_once(tmp_path, first):
    """The steps of an epoch are whole numbers in one, and not in the other."""
    logs = [str(ROOT / f"fixtures/{name}/run.log") for name in ("lightning-1/cloudwatch", "lightning-1/validation")]
    done = run_logparse("diagnose", *(logs if first else reversed(logs)), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_word_says_how_a_run_ended(tmp_path, language):
    (tmp_path / "run.log").write_text(megatron_log() + "[exiting program at iteration 6] datetime: 2026-06-18 16:59\n")
    word = {"en": "the trainer ended by itself before its plan", "zh": "训练程序在计划步数之前自行结束"}[language]
    for command in (("analyze",), ("diagnose",), ("diagnose", "-q")):
        assert word in run_logparse(*command, "run.log", "--lang", language, cwd=tmp_path).stdout, command
