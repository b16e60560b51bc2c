"""DeepSpeed 0.1, of 2020: the lines of the throughput timer alone, ``[INFO 2020-02-06 19:53:56] 0/50, SamplesPerSec=1292.6``.

The epoch comes before the slash, the pass of the engine after it: a step, if no gradients are accumulated.
``SamplesPerSec`` is the mean since the second pass, from forward to update: it excludes the time between two passes
(loading data, printing) and is not read. The stamps of whole seconds give the time. Later versions print ``step=``
lines too.

Source: deepspeedai/DeepSpeed 0.1.0, deepspeed/pt/deepspeed_timer.py, ThroughputTimer.stop.
"""

from logparse.formats._base import NUMBER, TIMESTAMP, Choice, Companion, LogFormat, Name, Sample, SettingSentence
from logparse.formats._deepspeed import LAUNCHED

# The dump of the configuration: the name, dots where there is room for them, the value.
_SIZES = (
    *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
    *("world_size", "steps_per_print"),
)
_NO_ACCUMULATION = {"engine:gradient_accumulation_steps": "1"}
_TIMER = "SamplesPerSec="


def _dumped(name: str, marker: str = "", value: str = r"\d+") -> SettingSentence:
    return SettingSentence("engine", marker or f"{name} ", rf"^(?:\S+: )?\s+{name} (?:\.+ )?\s?(?P<{name}>{value})\s*$")


FORMAT = LogFormat(
    name="deepspeed-timer",
    title="DeepSpeed 0.1 (SamplesPerSec lines alone)",
    framework="DeepSpeed",
    beneath=2,
    rate_of_passes=True,
    marker=(_TIMER,),
    # The line of a later version has the place in the source in front.
    head=r":\d\d\] \d+/(?P<step>\d+), SamplesPerSec=",
    pair="",
    labels={},
    required=("step",),
    # The head begins within the stamp.
    companions=(
        Companion(
            _TIMER,
            rf"\[INFO (?P<timestamp>{TIMESTAMP})\] \d+/\d+, SamplesPerSec=(?P<logged_samples_per_second>{NUMBER})",
        ),
    ),
    sentences=(
        *map(_dumped, _SIZES),
        _dumped("fp16_enabled", "_enabled ", r"\w+"),
        LAUNCHED,
    ),
    names=(
        Name("world_size", "launcher:world_size"),
        Name("global_batch_size", "engine:train_batch_size", when=_NO_ACCUMULATION),
        Name("micro_batch_size", "engine:train_micro_batch_size_per_gpu"),
        # Of the data-parallel ranks; a later version has others too.
        Name("data_parallel_size", "engine:world_size"),
    ),
    choices=(
        Choice("num_microbatches", "1", _NO_ACCUMULATION),
        Choice("precision", "fp16", {"engine:fp16_enabled": "True"}),
        Choice("precision", "fp32", {"engine:fp16_enabled": "False"}),
    ),
    samples=(
        Sample(
            "worker-0: [INFO 2020-02-06 19:53:56] rank:0 step=0, skipped=0, lr=[0.001], mom=[[0.8, 0.999]]\n"
            "worker-0: [INFO 2020-02-06 19:53:56] 0/50, SamplesPerSec=1292.6411179579866",
            {"timestamp": "2020-02-06T19:53:56", "step": 50, "logged_samples_per_second": 1292.6411179579866},
        ),
    ),
)
