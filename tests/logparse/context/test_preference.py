"""Training on preferences has a step time and rates, but no FLOPs, which a formula would count as plain training."""

import json

import pytest
from helpers import megatron_log, run_logparse

MODEL = ("--model", "llama2-7b")
SIZES = ("--world-size", "2", "--global-batch-size", "8", "--seq-length", "1024")
REWARDS = "'rewards/chosen': '0.5', 'rewards/rejected': '0.25', "
HF = (
    "{{'loss': '0.69', 'grad_norm': '1', 'learning_rate': '1e-05', {extra}'epoch': '{epoch}'}}\n"
    " {n}%|#         | {n}/100 [{clock}<20:00, 30.00s/it]\n"
)
SWIFT = (
    "{{'loss': 0.69, 'grad_norm': 1.5, 'learning_rate': 1e-05, {extra}'epoch': {epoch}, "
    "'global_step/max_steps': '{n}/100', 'elapsed_time': '{clock}'}}\n"
)
FACTORY = (
    '{{"current_steps": {n}, "total_steps": 100, "loss": 0.69, {extra}"learning_rate": 1e-05, "epoch": {epoch}, '
    '"elapsed_time": "0:{clock}"}}\n'
)
RECIPE = "model_name_or_path: base\nstage: {stage}\n"
ARGUMENTS = "[INFO:swift] args: RLHFArguments(\nrlhf_type='{stage}',\n)\n"


def steps(line, extra=""):
    return "".join(
        line.format(n=n, epoch=n / 100, extra=extra, clock=f"{n // 2:02}:{n % 2 * 30:02}") for n in range(1, 41)
    )


LOGS = {
    "TRL": (steps(HF, REWARDS), "preference training"),
    "LLaMA-Factory": (RECIPE.format(stage="rm") + steps(HF), "preference training"),
    "LLaMA-Factory command": ("llamafactory-cli train --stage kto --do_train\n" + steps(HF), "preference training"),
    "LLaMA-Factory trainer log": (steps(FACTORY, '"accuracy": 0.5, '), "preference training"),
    "LLaMA-Factory PPO": (steps(FACTORY, '"reward": 0.5, '), "rollouts"),
    "ms-swift": (ARGUMENTS.format(stage="simpo") + steps(SWIFT), "preference training"),
    "ms-swift rewards": (steps(SWIFT, REWARDS), "preference training"),
    "MindSpeed-LLM": (megatron_log(40, stage="orpo"), "preference training"),
    "Megatron-SWIFT": (megatron_log(40, rlhf_type="dpo"), "preference training"),
    "plain": (RECIPE.format(stage="sft") + steps(HF), None),
    "plain trainer log": (steps(FACTORY), None),
    "plain MindSpeed-LLM": (megatron_log(40, stage="sft"), None),
}


@pytest.mark.parametrize("name", LOGS)
def test_no_formula_counts_preferences(name, tmp_path):
    text, work = LOGS[name]
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    flags = MODEL if "arguments -----" in text else (*MODEL, *SIZES)
    (run,) = json.loads(run_logparse("analyze", "run.log", "--hw", "h100", "--json", *flags, cwd=tmp_path).stdout)[
        "runs"
    ]
    rate = run["rates"]["all_steps"]
    assert run["context"].get("mixed_step", {}).get("value") == work
    assert rate["step_time_ms"]
    assert rate["samples_per_second_per_device"]
    assert (rate["tflops_per_second_per_device"] is None) == (work is not None)
    assert (rate["mfu"] is None) == (work is not None)
    assert [note["fields"]["layers"] for note in run["notes"] if note["code"] == "layers_not_counted"] == [work] * bool(
        work
    )
