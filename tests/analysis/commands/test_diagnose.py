"""``logparse diagnose`` and the title of runs that ended: an empty log is refused, used-up data are an end."""

import pytest
from helpers import megatron_log, run_logparse

USED_UP = "[exiting program after consuming all available data at iteration 6] datetime: 2026-06-18 16:59:24\n"


@pytest.mark.parametrize(("language", "text"), [("en", "the log is empty"), ("zh", "日志为空")])
def test_an_empty_log_cannot_be_diagnosed(tmp_path, language, text):
    (tmp_path / "run.log").write_text("")
    done = run_logparse("diagnose", "run.log", "--lang", language, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert text in done.stderr


@pytest.mark.parametrize(
    ("language", "text"), [("en", "ended at step 6: the data are used up"), ("zh", "在第 6 步结束：数据已用完")]
)
def test_a_run_without_more_data_ended_and_did_not_fail(tmp_path, language, text):
    (tmp_path / "run.log").write_text(megatron_log() + USED_UP)
    shown = run_logparse("analyze", "run.log", "--lang", language, cwd=tmp_path).stdout
    assert shown.splitlines()[1].startswith(text)
    assert "exiting program" not in shown
    diagnosed = run_logparse("diagnose", "run.log", "--lang", language, cwd=tmp_path).stdout
    assert text in diagnosed
    assert "exiting program" in diagnosed
