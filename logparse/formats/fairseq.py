"""fairseq 0.6 and later: ``train_inner | epoch 001:    100 / 1423 loss=4.655, ..., wps=29046, ups=0.15, ..., num_updates=100, ...``.

All are means since the line before. ``wps`` is tokens with a loss per second of all devices. On a TPU of 2020 it counts
one update of each line, so no time is derived from it, nor from ``ups`` with its two decimals. The stamps of whole
seconds give the time, which includes saves and validation in between. ``bsz`` is samples of an update; their length is
known where all are filled up (``sample_break_mode`` none). Before 0.10 a line begins with ``| epoch`` and has no stamp.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Name, Reading, Sample, SettingSentence, evaluation, event

# The line with the whole configuration, as a Namespace or a dict.
_CONFIG = "distributed_world_size"
_FILLED = {"config:sample_break_mode": "(?i:none)"}


def _setting(name: str, value: str = r"\w+") -> SettingSentence:
    return SettingSentence("config", _CONFIG, rf"[ '({{]{name}'?[=:] ?'?(?P<{name}>{value})")


LABELS = {
    "loss": Reading("loss"),
    "wps": Reading("logged_tokens_per_second"),
    # A mean of batches that differ is that of none.
    "bsz": Reading("global_batch_size", absent=r"\d*\.\d+"),
    "num_updates": Reading("step"),
    "lr": Reading("learning_rate"),
    "gnorm": Reading("grad_norm"),
    "loss_scale": Reading("loss_scale"),
    "wall": Reading("runtime_seconds"),
}
# What a criterion logs, each with names of its own: nll_loss, ppl, overflow_expert, gnorm of a layer.
OTHERS = (r".*",)
RECORDS = (
    event("save starts", "Preparing to save ", r"Preparing to save checkpoint for epoch \d+ @ (?P<step>\d+) updates"),
    event(
        "save ends",
        " (writing took ",
        r"[Ss]aved checkpoint .* @ (?P<step>\d+) updates.*\(writing took (?P<seconds>[\d.]+) seconds",
    ),
    event("training ends", "done training in ", r"\| done training in "),
)
SENTENCES = (
    _setting("distributed_world_size", r"\d+"),
    _setting("model_parallel_size", r"\d+"),
    _setting("tokens_per_sample", r"\d+"),
    *(_setting(name) for name in ("sample_break_mode", "fp16", "bf16")),
    SettingSentence("devices", "| training on ", r"\| training on (?P<devices>\d+) (?:GPUs|devices)"),
)
NAMES = (
    Name("world_size", "devices:devices"),
    Name("world_size", "config:distributed_world_size"),
    Name("tensor_model_parallel_size", "config:model_parallel_size"),
    Name("seq_length", "config:tokens_per_sample", when=_FILLED),
)
CHOICES = (
    Choice("precision", "bf16", {"config:bf16": "True"}),
    Choice("precision", "fp16", {"config:fp16": "True"}),
    Choice("precision", "fp32", {"config:fp16": "False", "config:bf16": "False"}),
)

FORMAT = LogFormat(
    name="fairseq",
    title="fairseq (log_format simple)",
    framework="fairseq",
    traces=(r"\bfairseq(?:_cli)?[/.]",),
    marker=("| epoch ",),
    head=r"(?:\btrain_inner |^)\| epoch (?P<epoch>\d+): +\d+ / \d+ ",
    pair=r"([A-Za-z_][^=,\s]*)=([^,\s]*)(?:,|\s|$)",
    separator=",",
    labels=LABELS,
    ignored_patterns=OTHERS,
    required=("step",),
    records=(
        *RECORDS,
        evaluation("| valid on ", rf"\| valid on '(?P<dataset>[^']+)' subset \| loss (?P<loss>{NUMBER}) "),
    ),
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            "2026-03-02 06:58:33 | INFO | train_inner | epoch 002:    200 / 16036 loss=13.504, ppl=11620.5, wps=29046, "
            "ups=0.15, wpb=196608, bsz=192, num_updates=16236, lr=2e-06, gnorm=4.168, clip=0, loss_scale=8, "
            "train_wall=34, gb_free=9.3, wall=487",
            {
                "timestamp": "2026-03-02T06:58:33",
                "step": 16236,
                "epoch": 2,
                "loss": 13.504,
                "logged_tokens_per_second": 29046.0,
                "global_batch_size": 192,
                "learning_rate": 2e-06,
                "grad_norm": 4.168,
                "loss_scale": 8.0,
                "runtime_seconds": 487.0,
            },
        ),
        Sample(
            "| epoch 001:    100 / 1133 loss=13.125, nll_loss=12.9, ppl=7819.4, wps=268912, ups=1.5, wpb=190000, bsz=6120, "
            "num_updates=101, lr=1.2e-05, gnorm=2.5, clip=0%, oom=0, loss_scale=128.000, wall=71, train_wall=66",
            {
                "step": 101,
                "epoch": 1,
                "loss": 13.125,
                "logged_tokens_per_second": 268912.0,
                "global_batch_size": 6120,
                "learning_rate": 1.2e-05,
                "grad_norm": 2.5,
                "loss_scale": 128.0,
                "runtime_seconds": 71.0,
            },
        ),
        Sample(
            "2026-03-02 11:33:32 | INFO | train_inner | epoch 001:    100 / 487 loss=4.655, nll_loss=3.2, wps=14185.4, "
            "ups=0.5, wpb=28201.6, bsz=1117.8, num_updates=100, lr=3.75925e-05, gnorm=1.724, train_wall=93, wall=0",
            {
                "timestamp": "2026-03-02T11:33:32",
                "step": 100,
                "epoch": 1,
                "loss": 4.655,
                "logged_tokens_per_second": 14185.4,
                "learning_rate": 3.75925e-05,
                "grad_norm": 1.724,
                "runtime_seconds": 0.0,
            },
        ),
    ),
)
