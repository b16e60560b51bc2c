"""How a run of several files ended, and what the commands say of it; test_cases.py holds what one log shows."""

import json

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, megatron_log, run_logparse

from logparse.decode.read_run import diagnose_run
from logparse.failures.scan import quoted

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_the_launchers_report_is_read_in_its_own_file(tmp_path):
    cut, other = tmp_path / "node_0.log", tmp_path / "node_1.log"
    cut.write_text("starting\nValueError: a\nRoot Cause (first observed failure):\n")
    other.write_text(
        3 * "waiting\n" + "[0]:\n  host      : node1\n  rank      : 5 (local_rank: 5)\n  exitcode  : 1 (pid: 3)\n"
    )
    ending = diagnose_run([str(cut), str(other)])
    assert (ending.family, ending.rank, ending.host, ending.exit_code) == ("exception", None, None, None)


def test_files_of_ranks_are_ordered_by_their_clocks(tmp_path):
    for rank, second, message in ((0, 9, "RuntimeError: NCCL error, remote process exited"), (1, 5, "ValueError: a")):
        text = f"2025-01-02 03:04:0{second}.000] {message}\n"
        (tmp_path / f"rank_{rank}.log").write_text(text)
    ending = diagnose_run([str(tmp_path)])
    assert (ending.family, ending.source.endswith("rank_1.log")) == ("exception", True)


def test_the_command_answers_of_any_text(tmp_path):
    (tmp_path / "a.log").write_text(f"hello\n[rank3]: {OOM}\n")
    done = run_logparse("diagnose", "a.log", "--json", cwd=tmp_path)
    ending = json.loads(done.stdout)["ending"]
    assert (done.returncode, ending["state"], ending["line"], ending["remedy"]) == (0, "failed", 2, "device_memory")
    (tmp_path / "b.log").write_text("")
    done = run_logparse("diagnose", "b.log", cwd=tmp_path)
    assert (done.returncode, "the log is empty" in done.stderr) == (3, True)
    assert run_logparse("diagnose", "none.log", cwd=tmp_path).returncode == 2


def test_a_damaged_number_is_no_loss_of_nan(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("training\nloss: 0.1.2 loss: nan step 7\n")
    ending = diagnose_run([str(log)])
    assert (ending.family, ending.line) == ("numerics", 2)


def test_analyze_gives_the_same_ending(tmp_path):
    (tmp_path / "a.log").write_text(megatron_log() + f"[rank3]: {OOM}\n")
    asked = [run_logparse(command, "a.log", "--json", cwd=tmp_path) for command in ("analyze", "diagnose")]
    analyzed, ended = (json.loads(done.stdout) for done in asked)
    assert analyzed["runs"][0]["ending"] == ended["ending"]
    shown = " ".join(run_logparse("analyze", "a.log", cwd=tmp_path).stdout.split())
    assert "failed at step 6 of 500: rank 3, out of device memory" in shown


def test_of_very_many_attempts_the_first_and_the_last_are_kept(tmp_path):
    again = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    path = tmp_path / "run.log"
    path.write_text(f"[rank1]: ValueError: a\n{again}\n" * 400 + "[rank1]: ValueError: a\n")
    ending = diagnose_run([str(path)])
    assert (len(ending.attempts), ending.attempts_in_log, ending.repeated) == (20, 401, 401)
    assert (ending.attempts[0].line, ending.attempts[-1].line) == (1, 801)
    shown = " ".join(run_logparse("diagnose", "run.log", cwd=tmp_path).stdout.split())
    assert "attempts 401 in this log, the last 401 ended the same way" in shown


def test_a_run_that_completed_counts_the_attempts_before_it(tmp_path):
    failed = "Traceback (most recent call last):\nValueError: too many values\n"
    starts = [
        f"{arguments_dump(SETTINGS)}\n" + "".join(f"{megatron_line(step)}\n" for step in range(first, first + 4))
        for first in (489, 493, 497)
    ]
    (tmp_path / "run.log").write_text(failed.join(starts) + "[after training is done] datetime\n")
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "attempts    3 in this log, 2 x an exception, last at step 496" in shown
    assert "steps 489 to 500 of 500, completed in attempt 3" in run_logparse("analyze", "run.log", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('      "RuntimeError: bad value \\"x\\"\\n",', 'RuntimeError: bad value "x"'),
        ('   "\\u001b[31mValueError\\u001b[0m: no batch\\n"', "ValueError: no batch"),
        ('      "KeyError: \\q\\n",', "KeyError: \\q"),
        ('"ValueError: quoted",', '"ValueError: quoted",'),
    ],
)
def test_a_line_of_a_notebook_is_quoted_without_its_escapes(stored, shown):
    assert quoted(stored, "Error") == shown


@pytest.mark.parametrize(("loss", "lost"), [("nan", True), ("0.7", False)])
def test_a_completed_run_with_lost_losses_says_so(tmp_path, loss, lost):
    lines = [f"{{'eval_loss': {loss}, 'eval_runtime': 1.25, 'epoch': 0.{n}}}\n" for n in range(1, 9)]
    end = "{'train_runtime': 30.5, 'train_samples_per_second': 8.4, 'train_steps_per_second': 0.5, 'train_loss': 0.0}\n"
    (tmp_path / "run.log").write_text("".join(lines) + end + f"  eval_loss  =  {loss}\n")
    done = run_logparse("diagnose", "run.log", cwd=tmp_path)
    assert done.stdout.startswith("completed; but the last losses are not finite" if lost else "completed")
    assert ("values" in done.stdout) == lost
