"""The Hugging Face Trainer's bar, where no dict or only one is next to it: `` 20%|██  | 20/100 [00:42<02:48,  2.10s/it]``.

With ``report_to`` or a large ``logging_steps`` nothing else is printed. The bar's clock of whole seconds gives the time,
or its moving mean where the clock gives none. An evaluation has a bar of its own, of another length.

Source: huggingface/transformers 4.x and 5.x, src/transformers/trainer_callback.py, ProgressCallback.
"""

from logparse.formats._base import BAR_RATE, LogFormat, Sample
from logparse.formats._deepspeed import SKIPPED_UPDATE, SKIPPED_UPDATES
from logparse.formats.hf_trainer import FORMAT as DICTS

FORMAT = LogFormat(
    name="hf-trainer-bar",
    title="Hugging Face Trainer (progress bar alone)",
    framework="Hugging Face Trainer",
    log_of="hf-trainer",
    # The bars of other trainers look like it.
    beneath=3,
    rate_covers="recent",
    marker=("s/it]", "it/s]"),
    # What a library maps or loads has a word in front.
    head=(
        r"(?:^|\r) *\d+%\|[^|\r]*\| *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) "
        r"\[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE + r"\]"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    longest_plan=True,
    companions=(
        *(c for c in DICTS.companions if c.marker.startswith("Total") and "batch" in c.marker),
        SKIPPED_UPDATES,
    ),
    **DICTS.of_the_run,
    samples=(
        Sample(
            "[INFO|trainer.py:2438] 2025-08-08 07:25:52,030 >>   Total train batch size (w. parallel, distributed & "
            "accumulation) = 64\n" + SKIPPED_UPDATE + "  0%|          | 1/352 [04:50<28:17:51, 290.23s/it]",
            {
                "step": 1,
                "train_steps": 352,
                "runtime_seconds": 290.0,
                "logged_seconds_per_step": 290.23,
                "global_batch_size": 64,
                "skipped_iterations": 1,
            },
        ),
        Sample(
            "\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8\n"
            " 50%|█████     | 20/40 [00:10<00:10,  1.98it/s]",
            {
                "step": 20,
                "train_steps": 40,
                "runtime_seconds": 10.0,
                "logged_steps_per_second": 1.98,
                "global_batch_size": 8,
            },
        ),
    ),
)
