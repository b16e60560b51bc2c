"""Knover (PLATO), 2020 to 2022: one line per ``log_steps`` steps, its learning rate and its losses on the next two.

``time`` is that of all those steps, ``speed`` in steps per second gives that of one, without evaluation and saving.
With ``in_tokens`` a batch is a number of tokens, so the samples of batches differ.
"""

from logparse.formats._base import NUMBER, Block, Choice, Companion, LogFormat, Name, Reading, Sample

_SIZES = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_attention_heads",
    "vocab_size": "vocab_size",
}

FORMAT = LogFormat(
    name="knover",
    title="Knover",
    framework="Knover",
    pauses_inside=False,
    rate_covers="interval",
    marker=("progress: ",),
    head=r"\[train\]\[(?P<epoch>\d+)\] progress: \d+/\d+ step: (?P<step>\d+), ",
    pair=r"([a-z][a-z ]*): ([^,\s]+)(?: (?:steps/s))?(?:, |\s*$)",
    separator=", ",
    labels={"speed": Reading("logged_steps_per_second")},
    ignored=frozenset({"time", "queue size"}),
    required=("step",),
    companions=(
        Companion("current lr: ", rf"^\s+current lr: (?P<learning_rate>{NUMBER})"),
        Companion("ppl: ", rf"^\s+lm_loss: .*\bloss: (?P<loss>{NUMBER})"),
    ),
    blocks=(
        Block(
            "config",
            marker='"is_distributed": ',
            start=r'^\s*"is_distributed": ',
            end=r"^\}",
            entry=r'^\s*"([^"]+)": (.*?),?\s*$',
            nested=True,
            max_lines=300,
        ),
    ),
    names=tuple(Name(quantity, f"config:Model.{name}") for quantity, name in _SIZES.items()),
    choices=(
        Choice("precision", "fp16", {"config:Model.use_amp": "true"}),
        Choice("recompute", "full", {"config:Model.use_recompute": "true"}),
        Choice("variable_seq_lengths", "True", {"config:Reader.in_tokens": "true"}),
    ),
    samples=(
        Sample(
            "[train][1] progress: 1/1 step: 300, time: 4.000, speed: 25.000 steps/s\n"
            "\tcurrent lr: 0.0000030\n"
            "\tlm_loss: 4.2500, ppl: 70.1054, loss: 4.2750",
            {"step": 300, "epoch": 1, "logged_steps_per_second": 25.0, "learning_rate": 3e-06, "loss": 4.275},
        ),
        Sample(
            "[train][2] progress: 3/8 step: 1200, time: 40.000, queue size: 64, speed: 2.500 steps/s",
            {"step": 1200, "epoch": 2, "logged_steps_per_second": 2.5},
        ),
    ),
)
