"""MLPerf training logs, ``:::MLLOG {...}``: a line for each step or some, as NeMo prints in pretraining.

If the step comes last, as up to v5.0, it is the samples so far; else it counts from 0. The mean of a block follows its
last step line. It has no loss and is no step: it is read where nothing else is (``mllog-blocks``).
"""

from logparse.formats._base import Companion, LogFormat, Reading, Sample
from logparse.formats._mllog import BATCH, CHOICES, EVAL_LOSS, HEAD, NAMES, RECORDS, SENTENCES, STAMP

FORMAT = LogFormat(
    name="mllog",
    title="MLPerf training (:::MLLOG), by step",
    framework="MLPerf",
    benchmark=True,
    # The time of a step excludes the evaluation after it.
    pauses_inside=False,
    rate_covers="interval",
    beneath=1,
    marker=(', "reduced_train_loss": ',),
    head=HEAD,
    pair=r'"?([\w/]+)": "?([^",{}]+)"?(?:, |\}, )',
    separator=r"[,}]",
    labels={
        "train_step_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "reduced_train_loss": Reading("loss"),
        "step": Reading("step"),
    },
    ignored=frozenset({"file", "lineno", "max_memory_usage"}),
    ignored_patterns=(r"\w*(?:loss|lr|time|throughput)\w*",),
    required=("step",),
    companions=(
        Companion(
            '_stats", "value": ',
            rf'(?:{STAMP})?"value": \{{"train_step_time.*"(?:step|samples_count)": (?P<consumed_samples>\d+)(?:\.0)?\}}',
        ),
        # Over the steps since the last evaluation.
        Companion(
            '"value": {"throughput": ',
            r'"value": \{"throughput": (?P<logged_samples_per_second>[0-9.]+), "train_step_time"',
        ),
        BATCH,
    ),
    records=(*RECORDS, EVAL_LOSS),
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1759860908288, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 1152, "metadata": {"file": "pretrain.py", "lineno": 601}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1759861193998, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"train_step_time": 17.5, "reduced_train_loss": 7.6875}, '
            '"metadata": {"file": "custom_callbacks.py", "lineno": 480, "step": 1.0, "samples_count": 2304.0}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1759861194001, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"throughput": 65.75, "train_step_time": 17.5, "max_memory_usage": 58.5}, '
            '"metadata": {"file": "logging.py", "lineno": 245, "step": 2304}}',
            {
                "timestamp": "2025-10-07T18:19:53.998000",
                "step": 1,
                "elapsed_time_per_iteration_ms": 17500.0,
                "loss": 7.6875,
                "consumed_samples": 2304,
                "logged_samples_per_second": 65.75,
                "global_batch_size": 1152,
            },
        ),
    ),
)
