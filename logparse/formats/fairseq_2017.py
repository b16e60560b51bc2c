"""fairseq of 2017: ``| epoch 001:   1000 / 37483 loss=9.68 (10.49), wps=4632, wpb=3514, bsz=126, ...``.

A line prints the step of the epoch alone, and means since its start: tokens per second, and tokens of a batch.

Source: facebookresearch/fairseq 0.1.0, train.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Name, Reading, Sample, SettingSentence

FORMAT = LogFormat(
    name="fairseq-2017",
    title="fairseq of 2017",
    framework="fairseq",
    # Each begins anew with an epoch.
    rate_covers="recent",
    marker=("| epoch ",),
    head=(
        r"(?:^|\s)\| epoch (?P<epoch>\d+): +(?P<step_in_epoch>\d+) / (?P<steps_per_epoch>\d+) "
        rf"loss=(?P<loss>{NUMBER}) \([^)]*\), "
    ),
    pair=r"([A-Za-z_][^=,\s]*)=([^,\s]*)(?:,|\s|$)",
    separator=",",
    labels={
        "wps": Reading("logged_tokens_per_second"),
        "lr": Reading("learning_rate"),
        "gnorm": Reading("grad_norm"),
    },
    # The mean of batches that differ.
    ignored=frozenset({"wpb", "bsz", "clip"}),
    required=("step",),
    sentences=(SettingSentence("batch", ", wpb=", r"\bwps=\d+, wpb=(?P<tokens>\d+), ", first=True),),
    names=(Name("tokens_per_step", "batch:tokens"),),
    samples=(
        Sample(
            "| epoch 002:   1000 / 37483 loss=9.75 (10.49), wps=4632, wpb=3514, bsz=126, lr=0.25, clip=100%, gnorm=1.125",
            {
                "step": 38483,
                "epoch": 2,
                "step_in_epoch": 1000,
                "steps_per_epoch": 37483,
                "loss": 9.75,
                "logged_tokens_per_second": 4632.0,
                "learning_rate": 0.25,
                "grad_norm": 1.125,
            },
        ),
    ),
)
