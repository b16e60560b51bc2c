"""The Hugging Face Trainer 4.x and 5.x, and what is built on it: Accelerate, TRL, axolotl, LLaMA-Factory's console.

A Python dict per ``logging_steps``: ``{'loss': 2.3, 'learning_rate': 4.9e-05, 'epoch': 0.02}``, in 5.x with every
number as a string. It has neither step nor time. The bar drawn after it has the step and a clock; without a bar, the
epochs and the banner give the step. ``train_runtime`` counts from the start.
"""

from logparse.formats._base import (
    BAR_RATE,
    NUMBER,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Record,
    Sample,
    SettingSentence,
    evaluation,
    event,
)
from logparse.formats._deepspeed import SKIPPED_UPDATE, SKIPPED_UPDATES
from logparse.formats._hf_arguments import (
    HF_ARGUMENT_CHOICES,
    HF_ARGUMENT_NAMES,
    HF_ARGUMENT_SENTENCES,
    HF_ARGUMENTS,
)
from logparse.formats._hf_config import HF_CHOICES, HF_CONFIG, HF_NAMES, SUMMARY
from logparse.formats._peft import PEFT_CHOICES, PEFT_NAMES, PEFT_SENTENCES
from logparse.formats._preference import PREFERENCE_CHOICES, PREFERENCE_SENTENCES, algorithm_choices

# The first bar of a line; what a library maps or loads has none of a remaining time.
BAR = r"^[^|{]*?\d+%\|[^|]*\| *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) \[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE
_TOTAL = "Total train batch size"

FORMAT = LogFormat(
    name="hf-trainer",
    title="Hugging Face Trainer (Accelerate, TRL, axolotl, LLaMA-Factory)",
    framework="Hugging Face Trainer",
    beneath=1,
    fewest=2,
    # That of train_steps_per_second at the end; saves and evaluations are in it.
    rate_covers="run",
    marker=("{'loss': ",),
    head=rf"\{{'loss': '?(?P<loss>{NUMBER})'?, ",
    pair=r"'([^']+)': (?:'([^']*)'|([^',{}\[\]]+))(?:, |\})",
    separator=r"[,}]",
    labels={
        "grad_norm": Reading("grad_norm"),
        "learning_rate": Reading("learning_rate"),
        "epoch": Reading("epochs_done"),
        "num_input_tokens_seen": Reading("consumed_tokens"),
        "num_tokens": Reading("consumed_tokens"),  # TRL: of all devices since the start
        "train_runtime": Reading("runtime_seconds"),
        "tokens/train_per_sec_per_gpu": Reading("logged_tokens_per_second_per_device"),  # axolotl
        "tokens_per_second_per_gpu": Reading("logged_tokens_per_second_per_device"),
        "aux_loss": Reading("load_balancing_loss"),
    },
    ignored=frozenset(
        {
            # Since the start, not since the line before.
            "train_tokens_per_second",
            "throughput",
            "avg_tokens_per_second",
            "step_tokens_per_second",
            "reward",
            "reward_std",
            "kl",
            "entropy",
            "step_time",
            "mean_token_accuracy",
            "nll_loss",
            "accuracy",
            "frac_reward_zero_std",
            "completion_length",
            "total_flos",
            "ppl",
            "step",
        }
    ),
    # What trainers and callbacks add, each with a name of its own: rewards/chosen, step_peak_memory_allocated_MB.
    ignored_patterns=(r"[^/]+/.*", r"\w+_MB", r"\w*(?:loss|reward|accuracy|token_acc)\w*"),
    required=("step", "loss"),
    companions=(
        Companion(
            "'train_steps_per_second': ",
            # It comes before the pace of a bar, which is of the last steps alone. 0 is a rate that was not counted.
            r"(?:'train_runtime': '?(?P<training_seconds>[\d.]+(?:e\+\d+)?)'?, [^{}]*?)?"
            r"'train_steps_per_second': '?(?P<logged_steps_per_second>[1-9]\d*(?:\.\d+)?|0\.\d*[1-9]\d*)"
            r"(?:'?, [^{}]*?'epoch': '?(?P<training_epochs>[\d.]+))?",
            belongs_to="all",
        ),
        Companion("%|", BAR, belongs_to="behind"),
        Companion("Num examples = ", r"Num examples = (?P<epoch_samples>[\d,]+)", belongs_to="banner"),
        Companion(_TOTAL, r"Total train batch size .*\) = (?P<global_batch_size>[\d,]+)", belongs_to="banner"),
        # With --max_steps and a data set without a length it is the largest integer: no number of epochs.
        Companion(
            "Num Epochs = ",
            r"Num Epochs = (?P<epochs>\d{1,9}|\d{1,3}(?:,\d{3}){1,3})(?:[^\d,]|$)",
            belongs_to="banner",
        ),
        Companion("'train_loss': ", r"'train_loss': .*'epoch': '?(?P<epochs>\d+)(?:\.0+)?'?\}", belongs_to="all"),
        Companion(
            "Total batch size ",
            r"Total batch size (?:\([\d x]+\) )?= (?P<global_batch_size>[\d,]+)",
            belongs_to="banner",
        ),
        SKIPPED_UPDATES,
        Companion("| Total steps = ", r"\| Total steps = (?P<train_steps>[\d,]+)", belongs_to="banner"),
        Companion(
            "Total optimization steps", r"Total optimization steps = (?P<train_steps>[\d,]+)", belongs_to="banner"
        ),
        # If bars and dicts are apart in the log, the first bar and the last dict give the steps of an epoch.
        Companion("<?, ?it/s", r"(?:^|\r) *0%\|[^|]*\| *0/(?P<train_steps>[1-9]\d*) \[", belongs_to="file"),
    ),
    records=(
        event("training starts", "Running training", r"\*\*\*\*\* Running training"),
        event(
            "checkpoint loaded",
            "Continuing training from global step",
            r"Continuing training from global step (?P<step>\d+)",
        ),
        event("training ends", "Training completed", r"Training completed\."),
        event("save starts", "Saving model checkpoint to", r"Saving model checkpoint to .*checkpoint-(?P<step>\d+)"),
        evaluation("'eval_loss'", rf"'eval_loss': '?(?P<loss>{NUMBER})", "eval"),
        # The bar after it may not be in the log.
        Record("losses", "{'loss': ", rf"\{{'loss': '?(?P<loss>{NUMBER})"),
        Record("timers", "'eval_runtime'", rf"'(?P<name>eval_runtime)': '?(?P<max_ms>{NUMBER})", scale=1000),
        # Without a loss, where only metrics are computed.
        evaluation("{'eval_runtime'", r"\{'eval_runtime': ", "eval"),
    ),
    sentences=(
        *SUMMARY,
        SettingSentence("banner", "Instantaneous batch", r"batch size per device = (?P<micro_batch_size>\d+)"),
        SettingSentence("banner", "Gradient Accumulation", r"Gradient Accumulation steps = (?P<num_microbatches>\d+)"),
        # LLaMA-Factory and ms-swift.
        SettingSentence("launch", "world size: ", r"Process rank: \d+, world size: (?P<world_size>\d+), device:"),
        SettingSentence(
            "launch", "local_world_size: ", r"rank: -?\d+, local_rank: -?\d+, world_size: (?P<world_size>\d+),"
        ),
        # Accelerate's, where the user gave no number.
        SettingSentence(
            "launch", "`--num_processes` was set", r"`--num_processes` was set to a value of `(?P<num_processes>\d+)`"
        ),
        # Unsloth's banner.
        SettingSentence("unsloth", "Num GPUs", r"==  +Unsloth .* \| +Num GPUs(?: used)? = (?P<unsloth_gpus>\d+)"),
        SettingSentence("unsloth", "Batch size per device = ", r"Batch size per device = (?P<unsloth_batch>\d+)"),
        SettingSentence(
            "unsloth", "Gradient accumulation steps = ", r"Gradient accumulation steps = (?P<unsloth_passes>\d+)"
        ),
        *PEFT_SENTENCES,
        *HF_ARGUMENT_SENTENCES,
        # GRPO and its like: a step is generation and rewards too, of which no formula counts the work.
        SettingSentence("step", "'reward_std': ", r"'(?P<generates>reward_std)': ", first=True),
        *PREFERENCE_SENTENCES,
        # LLaMA-Factory's recipe or command, where the log begins with it.
        SettingSentence("recipe", "stage: ", r"^stage: (?P<stage>\w+)\s*$", first=True),
        SettingSentence("recipe", "--stage ", r"\s--stage (?P<stage>\w+)(?:\s|$)", first=True),
    ),
    blocks=(HF_CONFIG, HF_ARGUMENTS),
    choices=(
        Choice("mixed_step", "rollouts", {"step:generates": ".+"}),
        *PEFT_CHOICES,
        *PREFERENCE_CHOICES,
        *algorithm_choices("recipe:stage"),
        *HF_CHOICES,
        *HF_ARGUMENT_CHOICES,
    ),
    names=(
        *HF_NAMES,
        Name("world_size", "launch:world_size"),
        Name("world_size", "launch:num_processes"),
        Name("world_size", "unsloth:unsloth_gpus"),
        Name("micro_batch_size", "banner:micro_batch_size"),
        Name("micro_batch_size", "unsloth:unsloth_batch"),
        *HF_ARGUMENT_NAMES,
        # The total is over all devices, which so are counted; but for tensor parallelism, which is rare and not printed.
        Name("batch_size_per_device", "banner:micro_batch_size"),
        Name("num_microbatches", "banner:num_microbatches"),
        Name("num_microbatches", "unsloth:unsloth_passes"),
        *PEFT_NAMES,
    ),
    samples=(
        Sample(
            SKIPPED_UPDATE + " 19%|█▉        | 19/100 [00:40<02:51,  2.10s/it]\r{'loss': 2.3456, 'grad_norm': 1.2, "
            "'learning_rate': 4.9e-05, 'epoch': 0.4}\n"
            " 20%|██        | 20/100 [00:42<02:48,  2.10s/it]\r 21%|██        | 21/100 [00:44<02:46,  1.01it/s]",
            {
                "step": 20,
                "train_steps": 100,
                "loss": 2.3456,
                "grad_norm": 1.2,
                "learning_rate": 4.9e-05,
                "epochs_done": 0.4,
                "runtime_seconds": 42.0,
                "logged_seconds_per_step": 2.1,
                "skipped_iterations": 1,
            },
        ),
        Sample(
            "  Num examples = 2,400\n  Num Epochs = 3\n"
            "  Total train batch size (w. parallel, distributed & accumulation) = 24\n"
            "  Total optimization steps = 300\n"
            "{'loss': '2.559', 'grad_norm': '6.847', 'learning_rate': '5e-05', 'epoch': '0.1', "
            "'num_input_tokens_seen': 196608, 'train_runtime': '27.3', 'train_tokens_per_second': '7202'}",
            {
                "step": 10,
                "train_steps": 300,
                "epochs": 3,
                "loss": 2.559,
                "grad_norm": 6.847,
                "learning_rate": 5e-05,
                "epochs_done": 0.1,
                "epoch_samples": 2400,
                "global_batch_size": 24,
                "consumed_tokens": 196608,
                "runtime_seconds": 27.3,
            },
        ),
        Sample(
            "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 2\n"
            "   \\\\   /|    Num examples = 1,000 | Num Epochs = 1 | Total steps = 60\n"
            "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4\n"
            "\\        /    Data Parallel GPUs = 2 | Total batch size (2 x 4 x 2) = 16\n"
            "{'loss': 1.875, 'grad_norm': 0.5, 'learning_rate': 4e-05, 'epoch': 0.02}\n"
            "  2%|▏         | 1/60 [00:05<05:00,  5.10s/it]",
            {
                "step": 1,
                "train_steps": 60,
                "epochs": 1,
                "loss": 1.875,
                "grad_norm": 0.5,
                "learning_rate": 4e-05,
                "epochs_done": 0.02,
                "epoch_samples": 1000,
                "global_batch_size": 16,
                "runtime_seconds": 5.0,
                "logged_seconds_per_step": 5.1,
            },
        ),
        Sample(
            "  0%|          | 0/36 [00:00<?, ?it/s]\r  3%|▎         | 1/36 [00:04<02:25,  4.16s/it]\n"
            "{'loss': '1.498', 'grad_norm': '1.769', 'learning_rate': '0.0001983', 'epoch': '0.4255'}\n"
            "{'train_runtime': '112.8', 'train_steps_per_second': '0.319', 'train_loss': '0.2694', 'epoch': '3'}",
            {
                "step": 5,
                "train_steps": 36,
                "epochs": 3,
                "loss": 1.498,
                "grad_norm": 1.769,
                "learning_rate": 0.0001983,
                "epochs_done": 0.4255,
                "training_seconds": 112.8,
                "training_epochs": 3.0,
                "logged_steps_per_second": 0.319,
            },
        ),
    ),
)
