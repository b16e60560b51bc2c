"""LLaMA-Factory's ``trainer_log.jsonl``, 0.1 to 0.9: a JSON object per ``logging_steps``.

``elapsed_time`` counts from the start in whole seconds. ``throughput`` is the mean of all since the start, and a string
or 0 where nothing is counted.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Reading, Sample, SettingSentence, evaluation
from logparse.formats._preference import PREFERENCE

FORMAT = LogFormat(
    name="llama-factory",
    title="LLaMA-Factory, trainer_log.jsonl",
    framework="LLaMA-Factory",
    marker=('{"current_steps": ',),
    # An evaluation has eval_loss there. The last record of a training goes on with the epoch; a prediction, which
    # trains nothing, with the percentage.
    head=(
        r'\{"current_steps": (?P<step>\d+), "total_steps": (?P<train_steps>\d+), '
        rf'(?:"loss": (?P<loss>{NUMBER}), |"epoch": (?P<epochs_done>{NUMBER}), "percentage": [\d.]+, )'
    ),
    pair=r'"([^":,{}]+)": (?:"([^"]*)"|([^",}]*))(?:, |\})',
    separator=r"[,}]",
    labels={
        "lr": Reading("learning_rate"),
        "learning_rate": Reading("learning_rate"),  # to 0.9.0
        "epoch": Reading("epochs_done"),
        "elapsed_time": Reading("runtime_seconds"),
        "total_tokens": Reading("consumed_tokens"),
        "vram_allocated": Reading("max_memory_allocated_bytes", scale=float(2**30)),
        "vram_reserved": Reading("max_memory_reserved_bytes", scale=float(2**30)),
    },
    ignored=frozenset({"percentage", "remaining_time", "throughput", "reward", "accuracy", "predict_loss"}),
    required=("step",),
    # The last record may be of the step of the record before.
    redrawn=True,
    records=(
        evaluation('"eval_loss": ', rf'"current_steps": (?P<step>\d+), .*"eval_loss": (?P<loss>{NUMBER})', "eval"),
    ),
    sentences=(
        # The share of pairs in which the chosen answer has the greater reward; PPO has the reward alone.
        SettingSentence("step", '"accuracy": ', r'"(?P<preferences>accuracy)": ', first=True),
        SettingSentence("step", '"reward": ', r'"(?P<generates>reward)": ', first=True),
    ),
    choices=(
        Choice("mixed_step", "rollouts", {"step:generates": ".+"}),
        Choice("mixed_step", PREFERENCE, {"step:preferences": ".+"}),
    ),
    samples=(
        Sample(
            '{"current_steps": 20, "total_steps": 336, "loss": 0.9687, "accuracy": 0.475, "learning_rate": 2.9e-06, '
            '"epoch": 0.1777, "percentage": 5.95, "elapsed_time": "0:00:50", "remaining_time": "1 day, 0:13:24", '
            '"throughput": "0.00", "total_tokens": 0}',
            {
                "step": 20,
                "train_steps": 336,
                "loss": 0.9687,
                "learning_rate": 2.9e-06,
                "epochs_done": 0.1777,
                "runtime_seconds": 50.0,
                "consumed_tokens": 0,
            },
        ),
        Sample(
            '{"current_steps": 512, "total_steps": 512, "epoch": 2.98, "percentage": 100.0, "elapsed_time": '
            '"1 day, 1:00:05", "remaining_time": "0:00:00"}',
            {"step": 512, "train_steps": 512, "epochs_done": 2.98, "runtime_seconds": 90005.0},
        ),
    ),
)
