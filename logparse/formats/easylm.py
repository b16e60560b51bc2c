"""EasyLM: a dict over several lines, `` 'loss': Array(2.31, dtype=float32),`` to `` 'step': 50}``, above a bar without its bar.

Steps count from 0; the line is printed after the update. No time: the clock of whole seconds of the bar drawn again below
gives it, with saves and evaluations between two lines.

Source: young-geng/EasyLM, EasyLM/models/llama/llama_train.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Sample, event

# ``array(2.31, dtype=float32)`` where the values were fetched from the devices, as in all versions since 2022.
_VALUES = {
    "dataset_total_tokens": "consumed_tokens",
    "loss": "loss",
    "learning_rate": "learning_rate",
    "gradient_norm": "grad_norm",
    "param_norm": "params_norm",
}

FORMAT = LogFormat(
    name="easylm",
    title="EasyLM",
    framework="EasyLM",
    traces=(r"\bEasyLM[/.]",),
    pauses_inside=True,
    marker=(" 'step': ",),
    head=r"^ 'step': (?P<step>\d+)\}\s*$",
    pair="",
    from_zero=True,
    labels={},
    required=("step",),
    companions=(
        *(
            Companion(
                f"'{printed}': ",
                rf"^[ {{]'{printed}': (?:(?:Device)?[Aa]rray\()?(?P<{column}>{NUMBER})[,)]",
                belongs_to="next",
            )
            for printed, column in _VALUES.items()
        ),
        Companion(
            "s/it]", r"^[\s\r]*\d+% \d+/(?P<train_steps>\d+) \[(?P<runtime_seconds>[\d:]+)<", belongs_to="behind"
        ),
        Companion(
            "it/s]", r"^[\s\r]*\d+% \d+/(?P<train_steps>\d+) \[(?P<runtime_seconds>[\d:]+)<", belongs_to="behind"
        ),
    ),
    records=(event("training ends", "<00:00, ", r"\b100% \d+/\d+ \[[\d:]+<00:00,"),),
    samples=(
        Sample(
            "{'accuracy': Array(0.125, dtype=float32),\n"
            " 'dataset_total_tokens': 52224,\n"
            " 'gradient_norm': Array(1.5, dtype=float32),\n"
            " 'learning_rate': Array(0.0003, dtype=float32),\n"
            " 'loss': array(2.3125, dtype=float32),\n"
            " 'param_norm': Array(512.5, dtype=float32),\n"
            " 'step': 50}\n"
            "\n"
            "  1% 50/10000 [01:23<4:36:00,  1.65s/it]",
            {
                "step": 50,
                "consumed_tokens": 52224,
                "train_steps": 10000,
                "runtime_seconds": 83.0,
                "loss": 2.3125,
                "learning_rate": 0.0003,
                "grad_norm": 1.5,
                "params_norm": 512.5,
            },
        ),
        Sample(
            " 'step': 100}\n\n  1% 100/10000 [01:43<1:50:00,  1.50it/s]",
            {"step": 100, "train_steps": 10000, "runtime_seconds": 103.0},
        ),
    ),
)
