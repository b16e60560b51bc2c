"""Training scripts of diffusers and others on Accelerate: their bar, ``Steps:   2%|▏| 20/1000 [01:23<1:08:06,  4.17s/it, lr=1e-5]``.

A step of the bar is an update of the weights. Its clock of whole seconds gives the time. The bar is drawn for a step before its
loss and learning rate are there, with those of the step before: they are not read.
"""

from logparse.formats._base import PACE, Choice, Companion, LogFormat, Name, Sample, SettingSentence
from logparse.formats._deepspeed import SKIPPED_UPDATE, SKIPPED_UPDATES

_TOTAL = "Total train batch size"

FORMAT = LogFormat(
    name="accelerate-bar",
    title="Accelerate scripts, diffusers (progress bar)",
    framework="diffusers",
    trains_on="images",
    rate_covers="recent",
    marker=("Steps: ",),
    # Before the first step the remaining time is unknown.
    head=(
        r"\bSteps: +\d+%\|[^|\r]*\| *(?P<step>\d+)/(?P<train_steps>\d+) "
        r"\[(?P<runtime_seconds>[\d:]+)<" + PACE + r"[^\]\r]*\]?"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    companions=(
        Companion(_TOTAL, r"Total train batch size .*\) = (?P<global_batch_size>[\d,]+)", belongs_to="file"),
        SKIPPED_UPDATES,
    ),
    sentences=(
        SettingSentence("banner", "Instantaneous batch", r"batch size per device = (?P<micro_batch_size>\d+)"),
        SettingSentence("banner", "Gradient Accumulation", r"Gradient Accumulation steps = (?P<num_microbatches>\d+)"),
        SettingSentence("state", "Num processes: ", r"Num processes: (?P<processes>\d+)"),
        SettingSentence("state", "Mixed precision type: ", r"Mixed precision type: (?P<precision>\w+)"),
    ),
    names=(
        Name("world_size", "state:processes"),
        Name("micro_batch_size", "banner:micro_batch_size"),
        # The total is over all devices: a script holds the whole model on each.
        Name("batch_size_per_device", "banner:micro_batch_size"),
        Name("num_microbatches", "banner:num_microbatches"),
    ),
    choices=tuple(
        Choice("precision", precision, {"state:precision": word})
        for precision, word in (("bf16", "bf16"), ("fp16", "fp16"), ("fp8", "fp8"), ("fp32", "no"))
    ),
    samples=(
        Sample(
            "  Total train batch size (w. parallel, distributed & accumulation) = 32\n"
            + SKIPPED_UPDATE
            + "Steps:   2%|▏         | 20/1000 [01:23<1:08:06,  4.17s/it, lr=1e-5, step_loss=0.0734]",
            {
                "step": 20,
                "train_steps": 1000,
                "runtime_seconds": 83.0,
                "logged_seconds_per_step": 4.17,
                "global_batch_size": 32,
                "skipped_iterations": 1,
            },
        ),
        Sample(
            "Epoch 1/40, Steps:   2%|▏         | 160/7600 [37:37<20:46:10, 10.05s/it, grad_absmax=0.000186, lr=9.89e-5]",
            {"step": 160, "train_steps": 7600, "runtime_seconds": 2257.0, "logged_seconds_per_step": 10.05},
        ),
        Sample(
            "Steps: 100%|██████████| 400/400 [06:41<00:00,  1.01it/s, loss=0.213, lr=5e-6]",
            {"step": 400, "train_steps": 400, "runtime_seconds": 401.0, "logged_steps_per_second": 1.01},
        ),
    ),
)
