"""MLPerf training logs, ``:::MLLOG {...}`` of round v3.1: GPT-3, a line for each step, whose ``step`` counts tokens."""

from logparse.formats._base import Companion, LogFormat, Reading, Sample, SettingSentence
from logparse.formats._mllog import BATCH, CHOICES, EVAL_LOSS, HEAD, NAMES, RECORDS, SENTENCES, STAMP

FORMAT = LogFormat(
    name="mllog-tokens",
    title="MLPerf training (:::MLLOG), by tokens",
    framework="MLPerf",
    benchmark=True,
    pauses_inside=False,
    beneath=1,
    marker=('"train_step_timing": ',),
    head=HEAD,
    pair=r'"?([\w/]+)": "?([^",{}]+)"?(?:, |\}+)',
    separator=r"[,}]",
    labels={
        "train_step_timing": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "step": Reading("consumed_tokens"),
    },
    ignored=frozenset({"file", "lineno"}),
    # The run goes on from a checkpoint of another trainer, whose tokens are not counted.
    counted=True,
    companions=(
        Companion('"tracked_stats", ', rf'{STAMP}"train_step_timing"'),
        BATCH,
    ),
    records=(*RECORDS, EVAL_LOSS),
    # From run_start to run_stop, with the evaluations.
    sentences=(
        *SENTENCES,
        SettingSentence(
            "summary",
            '"value": {"throughput": ',
            r'"value": \{"throughput": (?P<logged_tokens_per_second>[0-9.]+)\}',
            last=True,
        ),
    ),
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1696466228407, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 2048, "metadata": {"file": "train.py", "lineno": 120}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1696466368958, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"train_step_timing": 11.375}, '
            '"metadata": {"file": "callbacks.py", "lineno": 277, "step": 4194304}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1696466369001, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"throughput": 368730.25}, "metadata": {"file": "callbacks.py", "lineno": 284}}',
            {
                "timestamp": "2023-10-05T00:39:28.958000",
                "step": 1,
                "elapsed_time_per_iteration_ms": 11375.0,
                "consumed_tokens": 4194304,
                "global_batch_size": 2048,
            },
        ),
    ),
)
