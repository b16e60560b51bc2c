"""PaddleSpeech: ``Train: Rank: 0, epoch: 1, step: 5310, ..., batch_cost: 0.51, ...`` of recognition, and of synthesis.

Synthesis prints ``iter: 100/767000, Rank: 0, ..., avg_batch_cost: 0.50 sec, ..., avg_ips: 128.0 sequences/sec``.
Recognition prints the cost of one batch, of which a step may be several (``accum``): the stamps give the time. Synthesis
prints the cost of the step. Rates are of one device.

Source: PaddlePaddle/PaddleSpeech, paddlespeech/s2t/exps/u2/model.py, do_train; paddlespeech/t2s/training/trainer.py, run;
issue 675.
"""

from logparse.formats._base import LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="paddlespeech",
    title="PaddleSpeech",
    framework="PaddleSpeech",
    trains_on="speech",
    traces=(r"\bpaddlespeech[/.]",),
    marker=("Train: Rank: ", "avg_batch_cost: "),
    head=(
        r"\b(?:Train: Rank: \d+, epoch: (?P<epoch>\d+), |iter: (?P<step>\d+)/(?:(?P<train_steps>\d+)|None), Rank: \d+, )"
    ),
    pair=r"([A-Za-z_][\w ]*(?:\[sent\./sec\])?) ?: ([^,]*?)(?:, |,?\s*$)",
    separator=", ",
    labels={
        "step": Reading("step"),
        "lr": Reading("learning_rate"),
        "loss": Reading("loss"),
        "train_loss": Reading("loss"),
        "avg_batch_cost": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix=" sec"),
        "avg_ips": Reading("logged_samples_per_second_per_device", suffix=" sequences/sec"),
        "ips[sent./sec]": Reading("logged_samples_per_second_per_device"),
    },
    # The losses of a model, and the parts of a batch.
    ignored_patterns=(r".*",),
    required=("step",),
    samples=(
        Sample(
            "2021-12-01 12:00:00.125 | INFO | paddlespeech.s2t.exps.u2.model:do_train:161 - Train: Rank: 0, epoch: 1, "
            "step: 5310, lr: 0.00012500, loss: 16.25, att_loss: 20.1, batch_size: 16, accum: 2, step_cost: 0.50, iter: 60, "
            "total: 3755, reader_cost: 0.001, batch_cost: 0.501, samples: 16, ips[sent./sec]: 31.25",
            {
                "timestamp": "2021-12-01T12:00:00.125000",
                "step": 5310,
                "epoch": 1,
                "learning_rate": 0.000125,
                "loss": 16.25,
                "logged_samples_per_second_per_device": 31.25,
            },
        ),
        Sample(
            "[2022-05-01 12:00:00] [INFO] [trainer.py:149] iter: 100/767000, Rank: 0, l1_loss: 0.75, loss: 1.50, "
            "avg_reader_cost: 0.00012 sec, avg_batch_cost: 0.50000 sec, avg_samples: 64, avg_ips: 128.00000 sequences/sec",
            {
                "timestamp": "2022-05-01T12:00:00",
                "step": 100,
                "train_steps": 767000,
                "loss": 1.5,
                "elapsed_time_per_iteration_ms": 500.0,
                "logged_samples_per_second_per_device": 128.0,
            },
        ),
    ),
)
