"""nanoGPT and its forks: ``iter 120: loss 4.0863, time 561.94ms, mfu 38.12%``.

The time runs from iteration to iteration, of the last one where several are between lines: evaluation and saving are in
that of the iteration after them. ``mfu`` is a moving mean against an A100, negative until it is known. Iterations count
from 0; one is all passes of an update. llama2.c prints ``120 | loss 4.0863 | lr 1e-4 | 561.94ms | mfu 38.12%``, build-nanogpt
``step 12 | loss: 5.9 | lr 3e-4 | norm: 0.8 | dt: 338.80ms | tok/sec: 1547.5``, tokens of all devices. lit-llama's ``time:`` is
that of one pass and is not read.

Source: karpathy/nanoGPT, train.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Name, Reading, Sample, SettingSentence, evaluation, event

_TIME = Reading("elapsed_time_per_iteration_ms", suffix="ms")

FORMAT = LogFormat(
    name="nanogpt",
    title="nanoGPT, build-nanogpt, llama2.c",
    framework="nanoGPT",
    pauses_inside=True,
    marker=(": loss ", "ms | mfu ", "ms | tok/sec: "),
    head=rf"(?:^|\biter |\bstep +)(?P<step>\d+)(?::| \|) loss:? (?P<loss>{NUMBER})(?:, | \| )",
    # llama2.c prints the time without a label.
    pair=r"([A-Za-z_/]*:?) ?([-+0-9.][^\s|,]*|nan)(?:,? |\s*\||\s*$)",
    separator=r", | \|",
    labels={
        "time": _TIME,
        "dt:": _TIME,
        "": _TIME,
        "mfu": Reading("logged_mfu", scale=0.01, suffix="%", absent="-.*"),
        "lr": Reading("learning_rate"),
        "norm:": Reading("grad_norm"),
        "tok/sec:": Reading("logged_tokens_per_second"),
    },
    ignored_patterns=(r".*",),
    records=(
        evaluation("val loss ", rf"\bstep (?P<step>\d+): train loss {NUMBER}, val loss (?P<loss>{NUMBER})", "val"),
        event("save starts", "saving checkpoint to ", r"^(?:\S+ \S+ )?saving checkpoint to "),
    ),
    sentences=(
        SettingSentence("sizes", "tokens per iteration", r"tokens per iteration will be: (?P<tokens>[\d,]+)"),
        SettingSentence("sizes", "total desired batch size", r"total desired batch size: (?P<tokens>\d+)"),
    ),
    names=(Name("tokens_per_step", "sizes:tokens"),),
    samples=(
        Sample(
            "2026-03-22 09:30:39 iter 2920: loss 3.9883, time 1099.34ms, mfu 15.34%",
            {
                "timestamp": "2026-03-22T09:30:39",
                "step": 2920,
                "loss": 3.9883,
                "elapsed_time_per_iteration_ms": 1099.34,
                "logged_mfu": 15.34 * 0.01,
            },
        ),
        Sample(
            "iter 1: loss 10.5883, time 599.50ms, mfu -100.00%",
            {"step": 1, "loss": 10.5883, "elapsed_time_per_iteration_ms": 599.5},
        ),
        Sample(
            "200 | loss 5.1250 | lr 5.000000e-04 | 412.75ms | mfu 21.00%",
            {
                "step": 200,
                "loss": 5.125,
                "learning_rate": 5e-4,
                "elapsed_time_per_iteration_ms": 412.75,
                "logged_mfu": 0.21,
            },
        ),
        Sample(
            "step    12 | loss: 5.937500 | lr 3.0000e-04 | norm: 0.8125 | dt: 338.80ms | tok/sec: 1547500.50",
            {
                "step": 12,
                "loss": 5.9375,
                "learning_rate": 3e-4,
                "grad_norm": 0.8125,
                "elapsed_time_per_iteration_ms": 338.8,
                "logged_tokens_per_second": 1547500.5,
            },
        ),
    ),
)
