"""llm.c, in C, CUDA and PyTorch: ``step   61/74 | loss 3.2 (+0.1z)| norm 1.5 (+0.2z)| lr 3.00e-04 | 44.57 ms | 38.1% bf16 MFU | 91886 tok/s``.

The time is that of the step, evaluation and saving left out; ``tok/s`` is a moving mean over all devices. The MFU is not
read: it is -100 % on a device that llm.c does not know.

Source: karpathy/llm.c, train_gpt2.cu.
"""

from logparse.formats._base import NUMBER, LogFormat, Name, Sample, SettingSentence, evaluation

# The table of settings at the beginning.
_TABLE = {
    "num_processes": "world_size",
    "micro batch size B": "micro_batch_size",
    "sequence length T": "seq_length",
    "total batch size": "tokens_per_step",
    "num_layers L": "num_layers",
    "channels C": "hidden_size",
    "num_heads NH": "num_attention_heads",
    "vocab_size V": "vocab_size",
    "padded_vocab_size Vp": "padded_vocab_size",
}
_Z = r"(?: \([^()]*z\))?"

FORMAT = LogFormat(
    name="llm.c",
    title="llm.c",
    framework="llm.c",
    pauses_inside=False,
    marker=(" tok/s",),
    head=(
        rf"\bstep +(?P<step>\d+)/(?P<train_steps>\d+) \| (?:train )?loss (?P<loss>{NUMBER}){_Z} ?\| norm "
        rf"(?P<grad_norm>{NUMBER}){_Z} ?\| lr (?P<learning_rate>{NUMBER}) \| \(?"
        rf"(?P<elapsed_time_per_iteration_ms>{NUMBER}) ms \| (?:[^|]* MFU \| )?(?P<logged_tokens_per_second>{NUMBER}) tok/s"
    ),
    pair="",
    labels={},
    records=(evaluation("val loss ", rf"^val loss (?P<loss>{NUMBER})\s*$", "val"),),
    sentences=tuple(
        SettingSentence("table", f"| {label}", rf"^\| {label} *\| (?P<{quantity}>\d+) *\|")
        for label, quantity in _TABLE.items()
    ),
    names=tuple(Name(quantity, f"table:{quantity}") for quantity in _TABLE.values()),
    samples=(
        Sample(
            "step   61/74 | loss 3.208939 (+nanz)| norm 1.4800 (+nanz)| lr 3.00e-04 | 44.57 ms | -100.0% bf16 MFU | 91886 tok/s",
            {
                "step": 61,
                "train_steps": 74,
                "loss": 3.208939,
                "grad_norm": 1.48,
                "learning_rate": 3e-4,
                "elapsed_time_per_iteration_ms": 44.57,
                "logged_tokens_per_second": 91886.0,
            },
        ),
        Sample(
            "step    5/50 | train loss 7.250000 | norm 2.5000 | lr 1.00e-04 | (125.50 ms | 32768 tok/s)",
            {
                "step": 5,
                "train_steps": 50,
                "loss": 7.25,
                "grad_norm": 2.5,
                "learning_rate": 1e-4,
                "elapsed_time_per_iteration_ms": 125.5,
                "logged_tokens_per_second": 32768.0,
            },
        ),
    ),
)
