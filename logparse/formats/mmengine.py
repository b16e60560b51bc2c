"""MMEngine, and what is built on it: XTuner 0.1 to 0.2, MMDetection 3 and its kin.

``Iter(train) [  10/500]  lr: 2e-05  eta: 0:10:00  time: 1.2345  data_time: 0.0123  memory: 12345  loss: 1.5``, of loops by
epoch ``Epoch(train)  [1][  10/1051]  ...``. An iteration is one pass of each device; with ``accumulative_counts`` an update of the
weights is several. ``time`` is the mean of the last ten iterations (``window_size``), loading data and saving included, in
seconds; ``tflops`` and ``tokens_per_sec`` are of the last one on this device. A console's stamp has no year and is not read.
"""

from logparse.formats._base import Choice, LogFormat, Name, Reading, Sample, SettingSentence, event

MIB = float(2**20)


def _setting(name: str) -> SettingSentence:
    """A line of the configuration, which is printed as Python; an indented line is of another part."""
    return SettingSentence("config", f"{name} = ", rf"^{name} = (?P<{name}>\w+)\s*$")


# Where the number of devices is printed, so is the rest of the environment.
_LAUNCHED = {"environment:gpus": r"\d+"}

FORMAT = LogFormat(
    name="mmengine",
    title="MMEngine (XTuner, MMDetection)",
    framework="MMEngine",
    traces=(r"\bxtuner[/.]|\bmmengine[/.]",),
    pauses_inside=True,
    rate_covers="step",
    marker=("Iter(train) ", "Epoch(train)"),
    head=(
        r"\b(?:Iter\(train\) +\[ *(?P<step>\d+)/(?P<train_steps>\d+)\]|Epoch\(train\) *\[ *(?P<epoch>\d+)\]"
        r"\[ *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+)\])\s+"
    ),
    # Learning rates have one blank between them, the rest has two; a paste may have one everywhere.
    pair=r"([A-Za-z_][\w./]*): (\d+ days?, [\d:]+|\S+)(?:\s+|$)",
    separator=r"\s",
    labels={
        "lr": Reading("learning_rate"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "memory": Reading("max_memory_allocated_bytes", scale=MIB),
        "loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "tflops": Reading("logged_tflops_per_second_per_device"),
        "tokens_per_sec": Reading("logged_tokens_per_second_per_device"),
    },
    # base_lr, eta, data_time, and what models add, each with names of its own: loss_cls, decode.acc_seg.
    ignored_patterns=(r".*",),
    records=(
        event("save starts", "Saving checkpoint at ", r"Saving checkpoint at (?P<step>\d+) iterations"),
        event("save starts", "Saving checkpoint at ", r"Saving checkpoint at \d+ epochs"),
    ),
    sentences=(
        SettingSentence("environment", "GPU number: ", r"^\s*GPU number: (?P<gpus>\d+)\s*$"),
        _setting("batch_size"),
        _setting("max_length"),
        _setting("pack_to_max_length"),
        _setting("use_varlen_attn"),
        _setting("sequence_parallel_size"),
        # MMDetection, MMSegmentation, MMPretrain and others; XTuner has no such scope.
        SettingSentence("config", "default_scope = ", r"^\s*default_scope = ['\"](?P<scope>mm\w+)['\"]"),
        SettingSentence("config", "lora=dict(", r"\b(?P<adapters>lora)=dict\("),
    ),
    names=(
        Name("world_size", "environment:gpus"),
        Name("context_parallel_size", "config:sequence_parallel_size"),
        Name("micro_batch_size", "config:batch_size"),
        Name("seq_length", "config:max_length", when={"config:pack_to_max_length": "True"}),
    ),
    choices=(
        # No layer is split, but sequences may be; an iteration is one pass.
        *(
            Choice(name, "1", _LAUNCHED)
            for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_microbatches")
        ),
        Choice("lora", "True", {"config:adapters": "lora"}),
        Choice("packed_documents", "True", {"config:use_varlen_attn": "True"}),
        Choice("training_data", "images", {"config:scope": r"mm(?!engine)\w+"}),
    ),
    samples=(
        Sample(
            "2026/03/02 11:26:39 - mmengine - INFO - Iter(train) [  10/5705]  lr: 1.0590e-05  eta: 1 day, 1:20:07  "
            "time: 0.8750  data_time: 0.0113  memory: 11785  grad_norm: 0.7445  loss: 2.2287  tflops: 98.5",
            {
                "timestamp": "2026-03-02T11:26:39",
                "step": 10,
                "train_steps": 5705,
                "learning_rate": 1.059e-05,
                "elapsed_time_per_iteration_ms": 875.0,
                "max_memory_allocated_bytes": 11785 * MIB,
                "grad_norm": 0.7445,
                "loss": 2.2287,
                "logged_tflops_per_second_per_device": 98.5,
            },
        ),
        Sample(
            "2026/03/02 11:26:39 - mmengine - INFO - Iter(train) [ 20/5705] lr: 1.0590e-05 eta: 0:20:07 time: 0.8750 loss: 2.2",
            {
                "timestamp": "2026-03-02T11:26:39",
                "step": 20,
                "train_steps": 5705,
                "learning_rate": 1.059e-05,
                "elapsed_time_per_iteration_ms": 875.0,
                "loss": 2.2,
            },
        ),
        Sample(
            "03/02 20:17:36 - mmengine - INFO - Epoch(train)  [2][  50/1051]  base_lr: 1.0000e-03 lr: 3.0000e-04  "
            "eta: 2:34:45  time: 0.5012  data_time: 0.0210  memory: 17929  loss: 7.6343  loss_cls: 3.1140",
            {
                "timestamp": "1904-03-02T20:17:36",
                "step": 1101,
                "epoch": 2,
                "step_in_epoch": 50,
                "steps_per_epoch": 1051,
                "learning_rate": 3e-4,
                "elapsed_time_per_iteration_ms": 501.2,
                "max_memory_allocated_bytes": 17929 * MIB,
                "loss": 7.6343,
            },
        ),
    ),
)
