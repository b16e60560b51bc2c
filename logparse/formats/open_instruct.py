"""open-instruct, and Accelerate scripts like it: ``03/02/2026 10:20:30 - INFO - __main__ -   Step: 10, LR: 2e-05, Loss: 1.25``.

A step is an update. No time: the stamps give it; until 2025-08 their month comes first. ``TPS`` is a mean since the start.

Source: allenai/open-instruct, open_instruct/finetune.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Name, Sample, SettingSentence

_STEP = "  Step: "

FORMAT = LogFormat(
    name="open-instruct",
    title="open-instruct",
    framework="open-instruct",
    traces=(r"\bopen_instruct[/.]",),
    rate_covers="start",
    marker=(_STEP,),
    head=rf"  Step: (?P<step>\d+), LR: (?P<learning_rate>{NUMBER}), Loss: (?P<loss>{NUMBER})"
    rf"(?:,? Aux Loss: {NUMBER})?(?:, TPS: (?P<logged_tokens_per_second>{NUMBER}))?",
    pair="",
    labels={},
    required=("step",),
    companions=(
        Companion(" Step: ", r"^.*?(?P<timestamp>\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) - \w+ - .*  Step: "),
        # With ``--verbose``: the tokens without padding.
        Companion("metrics_to_log=", r"^metrics_to_log=.*'total_tokens': (?P<consumed_tokens>\d+)"),
        Companion(
            "Total train batch size", r"Total train batch size .*\) = (?P<global_batch_size>\d+)", belongs_to="file"
        ),
        Companion("Total optimization steps", r"Total optimization steps = (?P<train_steps>\d+)", belongs_to="file"),
    ),
    sentences=(
        SettingSentence("banner", "Instantaneous batch", r"batch size per device = (?P<micro_batch_size>\d+)"),
        SettingSentence("banner", "Gradient Accumulation", r"Gradient Accumulation steps = (?P<num_microbatches>\d+)"),
    ),
    names=(
        Name("micro_batch_size", "banner:micro_batch_size"),
        Name("batch_size_per_device", "banner:micro_batch_size"),
        Name("num_microbatches", "banner:num_microbatches"),
    ),
    samples=(
        Sample(
            "2026-03-02 10:20:30 - INFO - finetune.py:948 - [RANK 0]   Step: 10, LR: 0.0, Loss: 1.5, Aux Loss: 0.25, TPS: 950.5",
            {
                "timestamp": "2026-03-02T10:20:30",
                "step": 10,
                "learning_rate": 0.0,
                "loss": 1.5,
                "logged_tokens_per_second": 950.5,
            },
        ),
        Sample(
            "03/02/2026 10:19:00 - INFO - __main__ -   Total train batch size (w. parallel, distributed & accumulation) = 128\n"
            "03/02/2026 10:19:00 - INFO - __main__ -   Total optimization steps = 900\n"
            "03/02/2026 10:20:30 - INFO - __main__ -   Step: 10, LR: 2e-05, Loss: 1.25, TPS: 30500.5\n"
            "metrics_to_log={'learning_rate': 2e-05, 'total_tokens': 7160, 'total_pred_tokens': 7000}",
            {
                "timestamp": "2026-03-02T10:20:30",
                "step": 10,
                "train_steps": 900,
                "global_batch_size": 128,
                "learning_rate": 2e-5,
                "loss": 1.25,
                "logged_tokens_per_second": 30500.5,
                "consumed_tokens": 7160,
            },
        ),
    ),
)
