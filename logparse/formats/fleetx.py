"""PaddleFleetX GPT and the GPT scripts of PaddleNLP 2.0 to 2.5: one line per ``logging_freq`` steps.

``avg_batch_cost`` is the mean time of a step over those. ``ips_total`` is of all devices; ``ips`` is of one device, of
one data-parallel rank or of all, as the script goes, and is not read. Lines without ``global step`` count batches from 0.
"""

from logparse.formats._base import LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="fleetx",
    title="PaddleFleetX GPT",
    framework="PaddleFleetX",
    marker=("_batch_cost: ",),
    head=r"(?:global step |\[train\] epoch: \d+, batch: )(?P<step>\d+), ",
    pair=r"([a-z_][a-z_ ]*): ([^,\s]+)(?: (?:sec|step/s|tokens/s))?(?:, |\s*$)",
    separator=", ",
    labels={
        "loss": Reading("loss"),
        "avg_batch_cost": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "speed": Reading("logged_steps_per_second"),
        "ips_total": Reading("logged_tokens_per_second"),
        "learning rate": Reading("learning_rate"),
    },
    ignored=frozenset({"epoch", "batch", "avg_reader_cost", "ips", "found_inf"}),
    samples=(
        Sample(
            "[2022-09-20 10:00:01,250] [    INFO] - [train] epoch: 0, batch: 7, loss: 10.992337000, "
            "avg_batch_cost: 0.51200 sec, speed: 1.95 step/s, ips_total: 16000 tokens/s, ips: 16000 tokens/s, "
            "learning rate: 1.25000e-07",
            {
                "timestamp": "2022-09-20T10:00:01.250000",
                "step": 7,
                "loss": 10.992337,
                "elapsed_time_per_iteration_ms": 512.0,
                "logged_steps_per_second": 1.95,
                "logged_tokens_per_second": 16000.0,
                "learning_rate": 1.25e-07,
            },
        ),
        Sample(
            "[2022-07-20 10:00:01,500] [    INFO] - global step 20, epoch: 0, batch: 19, loss: 9.750000000, "
            "avg_reader_cost: 0.00025 sec, avg_batch_cost: 0.40000 sec, speed: 2.50 step/s, "
            "ips_total: 163840 tokens/s, ips: 20480 tokens/s, learning rate: 5.55556e-09",
            {
                "timestamp": "2022-07-20T10:00:01.500000",
                "step": 20,
                "loss": 9.75,
                "elapsed_time_per_iteration_ms": 400.0,
                "logged_steps_per_second": 2.5,
                "logged_tokens_per_second": 163840.0,
                "learning_rate": 5.55556e-09,
            },
        ),
    ),
)
