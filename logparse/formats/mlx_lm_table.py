"""MLX-LM's table from 2026-06 on: ``    20    2.101 ▼    4,561      6.6k``, of ``iter   train_loss     tok/s     tokens``.

The rate is a mean since the line before, without validation; the tokens are those that are trained on, since the start, in
whole hundreds. No time: with ``--global-batch-size`` and ``--seq-length`` the rate gives it where samples are of one length.

Source: ml-explore/mlx-lm 0.32, mlx_lm/cli_ui.py, TrainUI.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample, evaluation
from logparse.formats.mlx_lm import FORMAT as LINES

FORMAT = LogFormat(
    name="mlx-lm-table",
    title="MLX-LM, its table",
    framework=LINES.framework,
    log_of=LINES.name,
    pauses_inside=False,
    rate_covers="interval",
    marker=(" ▼ ", " ▲ "),
    head=rf"^ +(?P<step>\d+) +(?P<loss>{NUMBER}) [▼▲] +(?P<logged_tokens_per_second>[\d,]+) +",
    pair=r"(?:(?P<label>\w+)=(?P<value>\w+)|(?P<number>[\d,]+\.\d)(?P<unit>k))\s*$",
    labels={"k": Reading("consumed_tokens", scale=1000)},
    required=("step",),
    records=(evaluation("    val ", rf"^ +(?P<step>\d+) +val +(?P<loss>{NUMBER}) +[\d.]+s\s*$", "val"),),
    samples=(
        Sample(
            "    20    2.101 ▼    4,561      6.6k",
            {"step": 20, "loss": 2.101, "logged_tokens_per_second": 4561.0, "consumed_tokens": 6600},
        ),
        Sample(
            "   300    1.125 ▲      161    100.5k",
            {"step": 300, "loss": 1.125, "logged_tokens_per_second": 161.0, "consumed_tokens": 100500},
        ),
    ),
)
