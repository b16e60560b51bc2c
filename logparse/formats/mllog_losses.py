"""MLPerf training logs, ``:::MLLOG {...}``: a line for each loss, whose clock alone gives the time of the steps.

DeepSpeed's and Gaudi's submissions of LoRA fine-tuning print them; NeMo prints them along with the lines of its blocks.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample
from logparse.formats._mllog import BATCH, STAMP
from logparse.formats.mllog import FORMAT as PASSES

FORMAT = LogFormat(
    name="mllog-losses",
    title="MLPerf training (:::MLLOG), losses alone",
    framework="MLPerf",
    benchmark=True,
    pauses_inside=True,
    beneath=3,
    marker=('"key": "train_loss', '_stats", "value": {"train_loss'),
    head=(
        r':::MLLOG \{.*?"(?:key": "train_loss ?", "value|tracked_stats", "value": \{"train_loss)": '
        rf'(?P<loss>{NUMBER})\}}?, "metadata": \{{'
    ),
    pair=r'"(\w+)": "?([^",{}]+)"?(?:, |\})',
    separator=r"[,}]",
    labels={"samples_count": Reading("consumed_samples"), "lr": Reading("learning_rate")},
    ignored=frozenset({"file", "lineno", "step"}),
    required=("step",),
    companions=(Companion('"train_loss', rf'{STAMP}"train_loss ?"'), BATCH),
    **PASSES.of_the_run,
    samples=(
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1715151043212, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 8, "metadata": {"file": "utils.py", "lineno": 70}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1715151935662, "event_type": "POINT_IN_TIME", "key": "train_loss", '
            '"value": 1.387, "metadata": {"file": "utils.py", "lineno": 102, "samples_count": 560}}',
            {
                "timestamp": "2024-05-08T07:05:35.662000",
                "step": 70,
                "loss": 1.387,
                "consumed_samples": 560,
                "global_batch_size": 8,
            },
        ),
        Sample(
            ':::MLLOG {"namespace": "", "time_ms": 1759904700117, "event_type": "POINT_IN_TIME", '
            '"key": "global_batch_size", "value": 8, "metadata": {"file": "logging.py", "lineno": 297}}\n'
            ':::MLLOG {"namespace": "", "time_ms": 1759904825527, "event_type": "POINT_IN_TIME", "key": '
            '"tracked_stats", "value": {"train_loss": 2.125}, "metadata": {"file": "callbacks.py", "lineno": 273, '
            '"samples_count": 80, "lr": 0.0005995, "step": 10}}',
            {
                "timestamp": "2025-10-08T06:27:05.527000",
                "step": 10,
                "loss": 2.125,
                "learning_rate": 0.0005995,
                "consumed_samples": 80,
                "global_batch_size": 8,
            },
        ),
    ),
)
