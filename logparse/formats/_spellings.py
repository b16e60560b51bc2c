"""What labels and units mean in most logs: the words from which a format is drafted, and by which a near one is named.

A spelling is compared in lower case, with a blank for every other sign. Here stands what a word means wherever it is
printed; what it means in one trainer stands in that trainer's format.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import regex

# By column. Words that stand for several of them (tokens/s of a device or of all) are doubts of ``DOUBTFUL``.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "step": ("step", "global step", "iteration", "iter", "current steps", "update", "num updates"),
    "train_steps": ("total steps", "max steps", "train steps", "total iterations"),
    "loss": ("loss", "train loss", "training loss", "lm loss", "ce loss", "cross entropy loss", "total loss"),
    "learning_rate": ("lr", "learning rate", "learningrate", "cur lr", "current lr"),
    "grad_norm": ("grad norm", "gradnorm", "gnorm", "gradient norm", "global grad norm", "total norm", "global norm"),
    "loss_scale": ("loss scale", "scale", "grad scale"),
    "elapsed_time_per_iteration_ms": (
        *("step time", "iter time", "iteration time", "time per step", "time per iteration", "batch time"),
        *("elapsed time per iteration", "elapsed time per step", "train step timing", "dt", "time"),
    ),
    "runtime_seconds": ("elapsed time", "elapsed", "total time", "runtime", "wall time", "train runtime", "wall"),
    "global_batch_size": ("global batch size", "gbs", "global bsz"),
    "seq_length": ("seq len", "seq length", "sequence length", "seqlen"),
    "consumed_samples": ("consumed samples", "samples seen", "seen samples", "total samples"),
    "consumed_tokens": ("consumed tokens", "tokens seen", "seen tokens", "total tokens", "num input tokens seen"),
    "logged_steps_per_second": ("steps s", "step s", "it s", "iter s", "iters s", "steps per sec", "steps per second"),
    "logged_samples_per_second": (
        "samples s",
        "samples per sec",
        "samples per second",
        "seqs s",
        "examples per second",
    ),
    "logged_tokens_per_second_per_device": (
        *("tokens s gpu", "tok s gpu", "tokens s device", "tokens s npu", "tokens s p", "tgs"),
        *("tokens per second per gpu", "tokens per sec per gpu", "tokens per gpu per second", "tokens gpu s"),
        *("tokens per second per device", "tokens per second per npu", "tokens sec gpu"),
    ),
    "logged_tflops_per_second_per_device": (
        *("tflops gpu", "tflop s gpu", "tflops per gpu", "tflops s gpu", "tflops per device", "tflop s device"),
        "throughput per gpu tflop s gpu",
    ),
    "logged_mfu": ("mfu",),
    "logged_hfu": ("hfu",),
    "epoch": ("epoch",),
}

# Spellings that tell no column by themselves, and what each may be.
DOUBTFUL: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("tokens s", "tok s", "tps", "tokens per sec", "tokens per second", "tokens sec", "tok sec", "wps"): (
        "logged_tokens_per_second",
        "logged_tokens_per_second_per_device",
    ),
    ("tflops", "tflop s", "tflops s"): ("logged_tflops_per_second_per_device",),
    ("batch size", "bs", "bsz", "batch"): ("global_batch_size",),
    ("memory", "mem", "gpu mem", "gpu memory", "max mem", "peak mem", "peak memory"): (
        "max_memory_allocated_bytes",
        "max_memory_reserved_bytes",
    ),
    ("norm", "total grad"): ("grad_norm",),
    ("samples",): ("consumed_samples", "global_batch_size"),
    ("tokens",): ("consumed_tokens",),
    ("avg loss", "mean loss", "running loss", "smoothed loss", "loss avg"): ("loss",),
}

# Units as they are printed, in a label or behind a number, and the factor to the unit of the column.
_TIME = {"ms": 1.0, "msec": 1.0, "milliseconds": 1.0, "us": 0.001, "s": 1000.0, "sec": 1000.0, "secs": 1000.0}
_TIME |= {"seconds": 1000.0, "second": 1000.0, "min": 60_000.0}
_STEPS = ("it", "step", "iter", "iteration", "batch")
_BYTES = {"gib": 2.0**30, "gb": 1e9, "mib": 2.0**20, "mb": 1e6}
TIME, RUNTIME = "elapsed_time_per_iteration_ms", "runtime_seconds"
UNITS_OF: Mapping[str, Mapping[str, float]] = {
    TIME: {**_TIME, **{f"{unit}/{of}": scale for unit, scale in _TIME.items() for of in _STEPS}},
    RUNTIME: {unit: scale / 1000 for unit, scale in _TIME.items()},
    "logged_mfu": {"%": 0.01},
    "logged_hfu": {"%": 0.01},
    "max_memory_allocated_bytes": _BYTES,
    "max_memory_reserved_bytes": _BYTES,
}
# Values that have a unit and no label, by the spelling of the unit: their column.
BARE_UNITS: Mapping[str, str] = {
    **{unit: TIME for unit in UNITS_OF[TIME] if "/" in unit},
    **dict.fromkeys(("it/s", "step/s", "steps/s", "iter/s", "iters/s"), "logged_steps_per_second"),
    **dict.fromkeys(("samples/s", "samples/sec", "seq/s", "seqs/s"), "logged_samples_per_second"),
    **dict.fromkeys(
        ("tokens/s/gpu", "tok/s/gpu", "tokens/s/p", "tokens/s/device"), "logged_tokens_per_second_per_device"
    ),
}


def plain(label: str) -> str:
    """``label`` in lower case, one blank for whatever is no letter or digit."""
    return " ".join(regex.findall(r"[a-z0-9]+", label.lower()))


@cache
def _columns() -> dict[str, tuple[str, ...]]:
    told = {spelling: (column,) for column, spellings in SPELLINGS.items() for spelling in spellings}
    return told | {spelling: columns for spellings, columns in DOUBTFUL.items() for spelling in spellings}


def unit_of(label: str) -> tuple[str, str]:
    """``label`` without the unit that stands in it, and the unit; "" where there is none."""
    found = regex.fullmatch(r"(.+?)(?:\s*[(\[]([\w/%]+)[)\]]|(?:_| in | )(ms|msec|s|sec|secs|seconds))", label.strip())
    return (found[1], (found[2] or found[3]).lower()) if found else (label, "")


def columns_of(label: str) -> tuple[str, ...]:
    """The column that the spelling of ``label`` tells, several where it may be any of them; none for other words."""
    whole, bare = plain(label), plain(unit_of(label)[0])
    last = plain(label.rpartition("/")[2])
    return next((_columns()[word] for word in (whole, bare, last) if word in _columns()), ())
