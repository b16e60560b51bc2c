"""MLPerf training logs, ``:::MLLOG {...}``: a line for each block between two evaluations, as of fine-tuning by LoRA.

It has the mean time of a step, or samples per second. What its ``step`` counts differs by submitter (samples at the
beginning or the end of the block, or of the block alone), so the samples are those of the evaluation after it.
"""

from logparse.formats._base import Companion, LogFormat, Reading, Record, Sample
from logparse.formats._mllog import BATCH, CHOICES, EVALUATED, HEAD, NAMES, RECORDS, SENTENCES, STAMP

TRAIN_LOSS = r'"train_loss ?"(?:, "value")?: (?P<loss>[0-9.e+-]+)'

FORMAT = LogFormat(
    name="mllog-blocks",
    title="MLPerf training (:::MLLOG), by block",
    framework="MLPerf",
    benchmark=True,
    # The rate of a block excludes the evaluation after it.
    pauses_inside=False,
    rate_covers="interval",
    beneath=2,
    marker=('_stats", "value": {"train_step_time', '_stats", "value": {"throughput'),
    head=HEAD,
    pair=r'"?([\w/]+)": "?([^",{}]+)"?(?:, |\}, )',
    separator=r"[,}]",
    labels={
        "train_step_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "throughput": Reading("logged_samples_per_second"),
    },
    ignored=frozenset({"file", "lineno", "step", "samples_count"}),
    ignored_patterns=(r"\w*(?:loss|lr|time|throughput|memory_usage)\w*",),
    required=("step",),
    companions=(
        Companion('"tracked_stats", ', rf'{STAMP}"value": \{{"(?:train_step_time|throughput)"'),
        Companion('"eval_start"', r'"eval_start".*"samples_count": (?P<consumed_samples>\d+)'),
        Companion('"train_loss', TRAIN_LOSS, belongs_to="next"),
        BATCH,
    ),
    # A block has several, the last of which is that of its line.
    records=(*RECORDS, EVALUATED, Record("losses", '"train_loss', TRAIN_LOSS)),
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            '0: :::MLLOG {"namespace": "", "time_ms": 1714993490208, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 8, "metadata": {"file": "callbacks.py", "lineno": 215}}\n'
            '0: :::MLLOG {"namespace": "", "time_ms": 1714994217162, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"throughput": 2.4538785600156627}, '
            '"metadata": {"file": "callbacks.py", "lineno": 161, "step": 1536}}\n'
            '0: :::MLLOG {"namespace": "", "time_ms": 1714994217162, "event_type": "INTERVAL_START", "key": '
            '"eval_start", "value": null, "metadata": {"file": "callbacks.py", "lineno": 119, "samples_count": 1536}}',
            {
                "timestamp": "2024-05-06T11:16:57.162000",
                "step": 192,
                "logged_samples_per_second": 2.4538785600156627,
                "consumed_samples": 1536,
                "global_batch_size": 8,
            },
        ),
        # The step is that at the beginning of the block.
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1745866288862, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 8, "metadata": {"file": "logging.py", "lineno": 297}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1745866903957, "event_type": "POINT_IN_TIME", "key": "train_loss", '
            '"value": 1.34, "metadata": {"file": "callbacks.py", "lineno": 273, "samples_count": 1920, "lr": 0.0003}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1745866903972, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"throughput": 9.6, "train_step_time": 0.8125, "max_memory_usage": 134.083}, '
            '"metadata": {"file": "logging.py", "lineno": 210, "step": 1536}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1745866903973, "event_type": "INTERVAL_START", "key": '
            '"eval_start", "value": null, "metadata": {"file": "logging.py", "lineno": 131, "samples_count": 1920}}',
            {
                "timestamp": "2025-04-28T19:01:43.972000",
                "step": 240,
                "elapsed_time_per_iteration_ms": 812.5,
                "loss": 1.34,
                "logged_samples_per_second": 9.6,
                "consumed_samples": 1920,
                "global_batch_size": 8,
            },
        ),
    ),
)
