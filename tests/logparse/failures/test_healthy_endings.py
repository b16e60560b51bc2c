"""Runs that succeeded are completed, whatever the launcher prints when it ends them."""

import random

import pytest
from helpers import megatron_line

from logparse.decode.read_run import diagnose_run

FEW, ALL = range(12), pytest.param(range(12, 71), marks=pytest.mark.sweep)
MLLOG = ':::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "{}", "key": "{}", "value": {}, "metadata": {}}}'
# What Slurm, NCCL and Python print when ranks end one after the other.
TEARDOWN = (
    "srun: error: node{0}: task {0}: Exited with exit code 1",
    "srun: error: node{0}: tasks 0-3,{0}: Exited with exit code 137",
    "srun: error: node{0}: task {0}: Killed",
    "srun: error: node{0}: task {0}: Aborted (core dumped)",
    "srun: error: node{0}: task {0}: Segmentation fault (core dumped)",
    "srun: error: node{0}: tasks 4-7: Terminated",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "slurmstepd: error: *** STEP 7.0 ON node{0} CANCELLED AT 2025-06-17T09:00:00 ***",
    "slurmstepd: error: *** JOB 7 ON node{0} CANCELLED AT 2025-06-17T09:00:00 DUE TO TIME LIMIT ***",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.",
    "[rank{0}]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited",
    "{0}: Fatal Python error: Aborted",
    "[rank{0}]:PythonFinalizationError: cannot join thread at interpreter shutdown",
    "W0117 07:40:00.1 elastic/multiprocessing/api.py:897] Sending process 4242 closing signal SIGTERM",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>",
)


def mlperf_log(seed):
    """An MLPerf result that succeeded: some of its lines are after the words of the launcher."""
    draw = random.Random(seed)
    prefix = draw.choice(("", "0: ", " 0: ", "1: "))
    lines = [MLLOG.format(0, "POINT_IN_TIME", "submission_benchmark", '"llama2_70b_lora"', "{}")]
    lines.append(MLLOG.format(1000, "INTERVAL_START", "run_start", "null", "{}"))
    for block in range(1, draw.randrange(3, 9)):
        fields = f'{{"samples_count": {block * 384}}}'
        lines.append(MLLOG.format(1000 + 60_000 * block, "POINT_IN_TIME", "eval_accuracy", 1 / block, fields))
    success = draw.choice(('{"status": "success"}', '{"samples_count": 3072, "status": "success"}'))
    lines.append(MLLOG.format(900_000, "INTERVAL_END", "run_stop", "null", success))
    after = [line.format(draw.randrange(8)) for line in draw.sample(TEARDOWN, draw.randrange(1, 6))]
    result = ["RESULT,LLM_FINETUNING,,1204,nvidia,2025-06-17 08:39:11 AM"] if draw.random() < 0.7 else []
    result += ["ENDING TIMING RUN AT 2025-06-17 08:59:15 AM"] if draw.random() < 0.5 else []
    at = draw.randrange(len(after) + 1)
    return "\n".join([*(prefix + line for line in lines), *after[:at], *result, *after[at:]]) + "\n"


@pytest.mark.parametrize("seeds", [FEW, ALL])
def test_a_result_of_mlperf_that_succeeded_is_completed(tmp_path, seeds):
    texts = {seed: mlperf_log(seed) for seed in seeds}
    assert not_completed(tmp_path, texts) == {}


def test_an_error_of_the_scheduler_before_the_success_does_not_count(tmp_path):
    text = mlperf_log(3).splitlines()
    at = next(number for number, line in enumerate(text) if "run_stop" in line)
    text.insert(at, "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-06-17T09:00:00 DUE TO TIME LIMIT ***")
    (tmp_path / "r.txt").write_text("\n".join(text) + "\n")
    assert diagnose_run([str(tmp_path / "r.txt")]).state == "completed"


def test_an_aborted_result_of_mlperf_is_not_completed(tmp_path):
    text = mlperf_log(3).replace('"status": "success"', '"status": "aborted"')
    (tmp_path / "r.txt").write_text(text)
    assert diagnose_run([str(tmp_path / "r.txt")]).state != "completed"


def test_the_last_planned_step_is_an_end(tmp_path):
    """Whichever line comes after it."""
    steps = [megatron_line(step) for step in (498, 499, 500)]
    texts = {
        line: "\n".join([*steps, line.format(n % 8), TEARDOWN[n - 3].format(3)]) + "\n"
        for n, line in enumerate(TEARDOWN)
    }
    assert not_completed(tmp_path, texts) == {}


def not_completed(folder, texts):
    """The endings that are not those of a run that succeeded."""
    found = {}
    for name, text in texts.items():
        (folder / "run.log").write_text(text)
        ending = diagnose_run([str(folder / "run.log")])
        if (ending.state, ending.family, ending.evidence, ending.suspects) != ("completed", "completed", (), ()):
            found[name] = ending
    return found


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_summary_of_the_trainer_is_the_end(tmp_path, quote):
    """On the console as a Python dict, in ms-swift's logging.jsonl as JSON; few steps after the last row have none."""
    rows = [
        f"{{'loss': 1.5, 'learning_rate': 1e-05, 'global_step/max_steps': '{n}/48', 'elapsed_time': '{n}s'}}"
        for n in (10, 20, 30, 40)
    ]
    rows.append("{'train_runtime': 96.5, 'train_loss': 1.4, 'epoch': 1.0, 'global_step/max_steps': '48/48'}")
    path = tmp_path / "logging.jsonl"
    path.write_text("\n".join(rows).replace("'", quote) + "\n", encoding="utf-8")
    assert diagnose_run([str(path)]).state == "completed"
    path.write_text("\n".join(rows[:-1]).replace("'", quote) + "\n", encoding="utf-8")
    assert diagnose_run([str(path)]).state != "completed"
