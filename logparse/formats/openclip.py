"""OpenCLIP 2.x and 3: ``Train Epoch: 0 [  512/51200 (1%)] Data (t): 0.8 Batch (t): 1.3, 393.8/s, 49.2/s/gpu LR: ... Loss: ...``.

Epochs count from 0. The samples within an epoch give the step, since the first line of an epoch follows its first batch.
``Batch (t)`` is the mean of the steps since the line before, in seconds, with data loading but without evaluation. The
rates are of the last step alone. A sample is an image with its text; ``--seq-length`` gives its tokens.
"""

from logparse.formats._base import (
    NUMBER,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Sample,
    SettingSentence,
    evaluation,
)

_RATES = (
    rf"\bBatch \(t\): {NUMBER}, (?P<logged_samples_per_second>{NUMBER})/s, "
    rf"(?P<logged_samples_per_second_per_device>{NUMBER})/s/gpu"
)


def _parameter(name: str) -> SettingSentence:
    return SettingSentence("parameters", f"  {name}: ", rf"\|   {name}: (?P<{name}>\w+)\s*$")


FORMAT = LogFormat(
    name="openclip",
    title="OpenCLIP",
    framework="OpenCLIP",
    trains_on="images",
    traces=(r"\bopen_clip(?:_train)?[/.]",),
    pauses_inside=False,
    rate_covers="step",
    marker=("Train Epoch: ",),
    head=(r"\bTrain Epoch: (?P<epoch>\d+) \[ *(?P<samples_in_epoch>\d+)/(?P<epoch_samples>\d+) \(\d+%\)\] "),
    # Rates, or the mean of the epoch in brackets, follow a value.
    pair=rf"([A-Z][A-Za-z_ ]*(?:\(t\))?): ({NUMBER})(?:[,\s]|$)",
    separator=r"\s",
    labels={
        "Batch (t)": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "LR": Reading("learning_rate"),
        "Loss": Reading("loss"),
    },
    ignored=frozenset({"Data (t)", "Logit Scale"}),
    ignored_patterns=(r"\w+_loss",),
    first_epoch=0,
    companions=(Companion("/s/gpu", _RATES),),
    records=(evaluation("Eval Epoch: ", rf"\bEval Epoch: \d+ .*\bclip_val_loss: (?P<loss>{NUMBER})", "validation"),),
    sentences=(
        _parameter("batch_size"),
        _parameter("accum_freq"),
        _parameter("world_size"),
        _parameter("precision"),
    ),
    names=(
        Name("world_size", "parameters:world_size"),
        Name("data_parallel_size", "parameters:world_size"),
        Name("micro_batch_size", "parameters:batch_size"),
        Name("num_microbatches", "parameters:accum_freq"),
    ),
    choices=(
        Choice("precision", "bf16", {"parameters:precision": "(?:amp_|pure_)?bf(?:loat)?16"}),
        Choice("precision", "fp16", {"parameters:precision": "amp|(?:pure_)?fp16"}),
        Choice("precision", "fp32", {"parameters:precision": "fp32"}),
    ),
    samples=(
        Sample(
            "2026-03-02,07:38:01 | INFO | Train Epoch: 2 [  512/51400 (1%)] Data (t): 0.812 Batch (t): 1.300, 393.846/s, "
            "49.2308/s/gpu LR: 0.000017 Logit Scale: 100.000 Contrastive_loss: 3.8036 (3.8036) Loss: 3.8036 (3.8036)\n"
            "2026-03-02,07:38:02 | INFO | Eval Epoch: 3 [512 / 4634]\tClip Loss: 6.919423\t",
            {
                "timestamp": "2026-03-02T07:38:01",
                "step": 201,
                "epoch": 2,
                "step_in_epoch": 1,
                "steps_per_epoch": 100,
                "samples_in_epoch": 512,
                "epoch_samples": 51400,
                "elapsed_time_per_iteration_ms": 1300.0,
                "global_batch_size": 512,
                "loss": 3.8036,
                "learning_rate": 0.000017,
                "logged_samples_per_second": 393.846,
                "logged_samples_per_second_per_device": 49.2308,
            },
        ),
    ),
)
