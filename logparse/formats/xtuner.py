"""XTuner v1: ``[XTuner][RANK 0][2025-08-29 09:17:51][INFO] Step 1/100 data_time: 0.0578 lr: 0.000020 time: 4.9770 ...``.

Each rank prints its own line. ``time`` is from the loaded batch to the update, ``data_time`` the wait for the batch before
it, a timer here: the step takes both, as its stamps show. ``tgs`` is tokens of this rank over ``time``; ``e2e_tgs`` is since
the start. Versions of 2025-09 and later print the epoch first.

Source: InternLM/xtuner 2025-07 to 2026-05, xtuner/v1/train/trainer.py, _log_step.
"""

from logparse.formats._base import LogFormat, Reading, Record, Sample

GIB = float(2**30)

FORMAT = LogFormat(
    name="xtuner",
    title="XTuner v1",
    framework="XTuner",
    traces=(r"\bxtuner/v1/", r"^\[XTuner\]\["),
    pauses_inside=False,
    rate_covers="step",
    marker=(" data_time: ",),
    head=r"\bStep (?P<step>\d+)/(?P<train_steps>\d+) (?:data_time: )",
    # The value of data_time comes first; what follows a number of memory is its unit.
    pair=r"([A-Za-z_/]+): (\d+ days?, [\d:]+|[^\s,]+),?(?:\s|$)",
    separator=r"\s",
    labels={
        "lr": Reading("learning_rate"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "reduced_llm_loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "max_memory": Reading("max_memory_allocated_bytes", scale=GIB),
        "reserved_memory": Reading("max_memory_reserved_bytes", scale=GIB),
        "tgs": Reading("logged_tokens_per_second_per_device"),
    },
    # Counts of tokens, other losses and rates since the start.
    ignored_patterns=(r".*",),
    records=(
        Record(
            "timers",
            "data_time: ",
            r"\bStep \d+/\d+ (?P<name>data_time): (?P<max_ms>[\d.]+) ",
            scale=1000,
        ),
    ),
    samples=(
        Sample(
            "[XTuner][RANK 3][2025-08-29 09:17:51][INFO] Step 7/100 data_time: 0.0578 lr: 0.000020 time: 4.9770 "
            "text_tokens: 4008.0 total_loss: 1.722 reduced_llm_loss: 1.684 max_memory: 15.50 GB reserved_memory: 17.00 GB "
            "grad_norm: 13.948 tgs: 805.3 e2e_tgs: 796.1 ",
            {
                "timestamp": "2025-08-29T09:17:51",
                "step": 7,
                "train_steps": 100,
                "learning_rate": 2e-5,
                "elapsed_time_per_iteration_ms": 4977.0,
                "loss": 1.684,
                "max_memory_allocated_bytes": 15.5 * GIB,
                "max_memory_reserved_bytes": 17 * GIB,
                "grad_norm": 13.948,
                "logged_tokens_per_second_per_device": 805.3,
            },
        ),
        Sample(
            "[XTuner][2025-11-03 10:20:30][INFO] Epoch 1 Step 8/100 data_time: 0.0100 lr: 3.000000e-05 time: 1.5000 "
            "text_tokens: 6144 total_consumed_tokens: 49152 local_loss: 1.70000000, reduced_llm_loss: 1.60000000 "
            "grad_norm: 2.50000000 max_memory: 20.00 GB reserved_memory: 24.00 GB tgs: 4096.0 e2e_tgs: 4000.0 "
            "eta: 1 day, 0:02:18 ",
            {
                "timestamp": "2025-11-03T10:20:30",
                "step": 8,
                "train_steps": 100,
                "learning_rate": 3e-5,
                "elapsed_time_per_iteration_ms": 1500.0,
                "loss": 1.6,
                "max_memory_allocated_bytes": 20 * GIB,
                "max_memory_reserved_bytes": 24 * GIB,
                "grad_norm": 2.5,
                "logged_tokens_per_second_per_device": 4096.0,
            },
        ),
    ),
)
