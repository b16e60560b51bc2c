"""Two formats that print the same steps into one file: one completes the other where nothing can be mistaken."""

import pytest
from helpers import megatron_line

from logparse.context.run_context import facts_of_other_formats
from logparse.decode.read_run import ParsedLog, read_run

STEPS = range(1, 9)
BATCH = '"key": "global_batch_size", "value": 24, "metadata": {}}'


def lr(step: int) -> float:
    """A warm-up, so that each step has its own."""
    return 1.25e-6 * step


def megatron(step: int) -> str:
    return megatron_line(step, pairs={"learning rate": f"{lr(step):.3E}"})


def deepspeed(step: int, late: int = 0) -> str:
    clock = f"[2025-03-02 10:20:{step + late:02d},104]"
    return (
        f"{clock} [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[{lr(step + late)}], mom=[(0.9)]"
    )


def nemo(step: int) -> str:
    bar = f"Epoch 0:   1%|▏| {step + 1}/200 [00:{step:02d}<11:05,  1.00s/it, "
    return f"{bar}reduced_train_loss={7 - step / 8:.3f}, global_step={step}.000]"


def mllog(step: int) -> str:
    values = f'{{"train_step_time": {1 + step / 4}, "reduced_train_loss": {7 - step / 8}}}'
    place = f'{{"lineno": 1, "step": {step}.0, "samples_count": {24.0 * step}}}'
    return f':::MLLOG {{"key": "tracked_stats", "value": {values}, "metadata": {place}}}'


LOGS = {
    "above": ("megatron", "deepspeed", [line for s in STEPS for line in (megatron(s), deepspeed(s))]),
    "below": ("megatron", "deepspeed", [line for s in STEPS for line in (deepspeed(s), "noise", megatron(s))]),
    "ranks": ("megatron", "deepspeed", [line for s in STEPS for line in (deepspeed(s), megatron(s), megatron(s))]),
    "starts": ("megatron", "deepspeed", 2 * [line for s in STEPS for line in (deepspeed(s), megatron(s))]),
    "MLPerf": ("nemo-bar", "mllog", [BATCH, *(line for s in STEPS for line in (mllog(s), nemo(s)))]),
}


def read(folder, lines: list[str], fmt: str | None = None) -> ParsedLog:
    path = folder / "run.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_run([str(path)], fmt)


@pytest.mark.parametrize("case", LOGS)
def test_what_one_lacks_is_what_the_other_says_alone(tmp_path, case):
    richest, other, lines = LOGS[case]
    log = read(tmp_path, lines)
    own, alone = (read(tmp_path, lines, name) for name in (richest, other))
    (given,) = log.completions
    assert (log.format.name, given.format, [note.code for note in log.notes]) == (richest, other, [given.note.code])
    lacking = [c for c in given.columns if own.steps[c].is_null().all()]
    assert lacking == list(given.columns)
    assert log.steps.drop(given.columns).equals(own.steps.drop(given.columns))
    said = alone.steps.select("step", *given.columns).unique(maintain_order=True)
    assert log.steps.select("step", *given.columns).unique(maintain_order=True).equals(said)
    assert (given.rows, given.line_number) == (len(own.steps), alone.steps["line_number"][0])


def test_batch_and_time_of_mlperf_complete_a_bar(tmp_path):
    log = read(tmp_path, LOGS["MLPerf"][2])
    assert {"global_batch_size", "elapsed_time_per_iteration_ms"} <= {*log.completions[0].columns}
    assert log.steps["elapsed_time_per_iteration_ms"].to_list() == [1000 + 250 * step for step in STEPS]


UNSURE = {
    "numbers from 0": [line for s in STEPS for line in (deepspeed(s - 1, late=1), megatron(s))],
    "nothing tells steps apart": [line for s in STEPS for line in (deepspeed(s, late=-s), megatron(s))],
    "one step": [deepspeed(1), megatron(1)],
    "a hole": [line for s in STEPS for line in (*[deepspeed(s)] * (s != 4), megatron(s))],
    "twice": [line for s in STEPS for line in (deepspeed(s), deepspeed(s), megatron(s))],
}


@pytest.mark.parametrize("case", UNSURE)
def test_nothing_is_given_where_steps_may_be_others(tmp_path, case):
    lines = UNSURE[case]
    if case == "nothing tells steps apart":
        lines = [line.replace(f"{lr(int(n) + 1):.3E}", "0.0") for n, line in enumerate(lines)]
    log = read(tmp_path, lines)
    assert (log.completions, log.notes) == ((), ())
    assert log.steps["timestamp"].is_null().all()


def test_settings_of_a_library_stand_in_where_the_trainer_prints_none(tmp_path):
    dump = ["[INFO] [config.py:1001:print]   train_batch_size ............. 64"]
    other = [line.replace("64", "32") for line in dump]
    lines = [nemo(s) for s in STEPS]
    found = facts_of_other_formats(read(tmp_path, dump + lines).other_settings, several=False)
    assert {name: fact.origin.rule for name, fact in found.items()} == {"global_batch_size": "deepspeed"}
    assert not facts_of_other_formats(read(tmp_path, dump + other + lines).other_settings, several=False)
