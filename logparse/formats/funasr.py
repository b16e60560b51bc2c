"""FunASR 1.x: ``train, rank: 0, epoch: 0/50, data_slice: 0/1, step_in_slice: 10/1000, step_in_epoch: 10, total step: 10, (loss_avg_rank: 1.2), ..., {'data_load': '0.001', ..., 'total_time': '0.345'}``.

Each rank prints; of lines with one step the first counts. ``total_time`` is that of the last batch, loading data included.

Source: modelscope/FunASR, funasr/train_utils/trainer.py; printed in its tutorial.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="funasr",
    title="FunASR",
    framework="FunASR",
    trains_on="speech",
    traces=(r"\bfunasr[/.]",),
    pauses_inside=False,
    rate_covers="step",
    marker=(", total step: ",),
    head=r"\btrain, rank: \d+, epoch: \d+/\d+, .*?\btotal step: (?P<step>\d+), ",
    pair=rf"[('\"]+(\w+)['\"]?: '?({NUMBER})'?[,)}}]",
    separator=r"[,)}]",
    labels={
        "loss_avg_rank": Reading("loss"),
        "lr": Reading("learning_rate"),
        "total_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
    },
    ignored_patterns=(r".*",),
    redrawn=True,
    samples=(
        Sample(
            "[2024-05-06 12:00:00,125][root][INFO] - train, rank: 1, epoch: 0/50, data_slice: 0/1, step_in_slice: 10/1000, "
            "step_in_epoch: 10, total step: 10, (loss_avg_rank: 1.250), (loss_avg_slice: 1.275), (ppl_avg_slice: 3.490e+00), "
            "(acc_avg_slice: 0.500), (lr: 2.000e-06), [('loss', 1.2), ('acc', 0.5)], {'data_load': '0.001', "
            "'forward_time': '0.100', 'backward_time': '0.200', 'optim_time': '0.030', 'total_time': '0.345'}, GPU, memory",
            {
                "timestamp": "2024-05-06T12:00:00.125000",
                "step": 10,
                "loss": 1.25,
                "learning_rate": 2e-6,
                "elapsed_time_per_iteration_ms": 345.0,
            },
        ),
    ),
)
