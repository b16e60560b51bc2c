"""MLPerf training logs, ``:::MLLOG {...}``: JSON lines of rounds v4.0 to v5.1, whatever trainer is above them.

``tracked_stats`` hold the time of a step, or the samples per second since the evaluation before. Where the step stands last,
as to v5.0 and for LoRA, it is the samples so far; else it counts from 0.
"""

from logparse.formats._base import Companion, LogFormat, Name, Reading, Record, Sample, SettingSentence


def _point(name: str) -> SettingSentence:
    return SettingSentence("point", f'"key": "{name}"', rf'"key": "{name}", "value": "?(?P<{name}>[^",]+)')


FORMAT = LogFormat(
    name="mllog",
    title="MLPerf training (:::MLLOG)",
    framework="MLPerf",
    # The rate of a block is without the evaluation behind it.
    pauses_inside=False,
    rate_covers="interval",
    beneath=1,
    marker=('_stats", "value": {"train_step_time', '_stats", "value": {"throughput'),
    head=r':::MLLOG \{.*?"tracked_stats", "value": \{',
    pair=r'"?([\w/]+)": "?([^",{}]+)"?(?:, |\}, )',
    separator=r"[,}]",
    delimiter=", ",
    labels={
        "train_step_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "throughput": Reading("logged_samples_per_second"),
        "reduced_train_loss": Reading("loss"),
        "step": Reading("step"),
    },
    ignored=frozenset({"file", "lineno", "max_memory_usage"}),
    ignored_patterns=(r"\w*(?:loss|lr|time|throughput)\w*",),
    required=("step",),
    companions=(
        Companion(
            '_stats", "value": ',
            r'"value": \{"(?:train_step_time|throughput)".*"(?:step|samples_count)": (?P<consumed_samples>\d+)(?:\.0)?\}',
        ),
        Companion(
            '"global_batch_size", "value": ',
            r'"key": "global_batch_size", "value": (?P<global_batch_size>\d+)',
            belongs_to="file",
        ),
    ),
    records=(
        Record("events", '"key": "run_start"', r'"key": "run_start"', fixed={"kind": "training starts"}),
        Record("events", '"key": "run_stop"', r'"key": "run_stop"', fixed={"kind": "training ends"}),
    ),
    sentences=(
        _point("max_sequence_length"),
        _point("gradient_accumulation_steps"),
        _point("submission_benchmark"),
    ),
    names=(
        Name("seq_length", "point:max_sequence_length"),
        Name("model_name", "point:submission_benchmark"),
    ),
    samples=(
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1759860908288, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 1152, "metadata": {"file": "pretrain.py", "lineno": 601}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1759861193998, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"train_step_time": 17.5, "reduced_train_loss": 7.6875}, '
            '"metadata": {"file": "custom_callbacks.py", "lineno": 480, "step": 1.0, "samples_count": 2304.0}}',
            {
                "step": 1,
                "elapsed_time_per_iteration_ms": 17500.0,
                "loss": 7.6875,
                "consumed_samples": 2304,
                "global_batch_size": 1152,
            },
        ),
        Sample(
            '0: :::MLLOG {"namespace": "", "time_ms": 1714993490208, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 8, "metadata": {"file": "callbacks.py", "lineno": 215}}\n'
            '0: :::MLLOG {"namespace": "", "time_ms": 1714994217162, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"throughput": 2.4538785600156627}, '
            '"metadata": {"file": "callbacks.py", "lineno": 161, "step": 1536}}',
            {
                "step": 192,
                "logged_samples_per_second": 2.4538785600156627,
                "consumed_samples": 1536,
                "global_batch_size": 8,
            },
        ),
    ),
)
