"""What ``logparse estimate`` is asked, put together: flags, a model, a config file, a device, a log.

Comes in: options as given. Goes out: a Job. Nothing is estimated or printed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import polars as pl

from analysis.devices import Device, DevicePeak, choose_peak, find_device, peak_by_hand
from analysis.estimate import Fixed, Job, Training
from analysis.estimate.step import NETWORK_GBITS
from analysis.flops import Formula, Recompute
from analysis.parameters import Details
from analysis.shape import ModelShape
from logparse.commands._load import Given, load
from logparse.commands._results import Choices, analyze_run
from logparse.derivations import derive, is_derived
from logparse.errors import UsageError
from logparse.language import tr
from logparse.run_context import Fact

# Short flags of quantities whose own flags are long.
SHORT = {
    "devices": "world_size",
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "dp": "data_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
}
# Taken where neither the user nor a log says more; shown as such.
ASSUMED: dict[str, Any] = {
    "micro_batch_size": 1,
    "recompute": "none",
    "precision": "bf16",
    "untie_embeddings_and_output_weights": True,
}


@dataclass(frozen=True)
class Asked:
    """Options that are no facts of a run."""

    formula: Formula
    details: Details
    ep: int | None
    vpp: int | None
    zero: int | None
    sequence_parallel: bool | None
    flash_attention: bool | None
    dropout: bool
    network_gbits: float | None
    tokens: float | None
    utilisation: float | None
    days: float | None

    def check(self) -> None:
        """Raises UsageError for a number that means nothing."""
        if self.zero not in (None, 0, 1, 2, 3):
            problem = tr("{flag} is {value:g}", flag="--zero", value=self.zero)
            raise UsageError(problem, remedy=tr("use one of {names}", names="0, 1, 2, 3"))
        positive("--tokens", self.tokens)
        positive("--days", self.days)
        positive("--network-gbits", self.network_gbits)
        positive("--utilisation", self.utilisation, 1.0)


@dataclass(frozen=True)
class Machine:
    """The device and what was given by hand of it."""

    device: Device | None
    peak_tflops: float | None
    memory_gb: float | None

    def peak(self, dtype: str) -> DevicePeak | None:
        """The peak for ``dtype``; None where it is unknown."""
        if self.peak_tflops is not None:
            return peak_by_hand(self.peak_tflops, dtype)
        return choose_peak(self.device, dtype) if self.device else None

    def notes(self, training: Training | None) -> tuple[str, ...]:
        """What must be said of the device."""
        dtype = training.dtype if training else ASSUMED["precision"]
        peak = self.peak(dtype)
        if self.device is None or peak is not None:
            return peak.notes if peak else ()
        lacks = tr("no {dtype} peak is known for {device}: pass --peak-tflops", dtype=dtype, device=self.device.name)
        return (lacks, *self.device.notes)


@dataclass(frozen=True)
class Measured:
    """What the log of --from says."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    utilisation: float | None = None
    notes: tuple[str, ...] = ()


def positive(flag: str, value: float | None, most: float = math.inf) -> float | None:
    """``value`` as given. Raises UsageError unless it is above 0 and not above ``most``."""
    if value is not None and not 0 < value <= most:
        limit = tr("a number above 0") if most == math.inf else tr("a share above 0 and up to 1, such as 0.4")
        raise UsageError(tr("{flag} is {value:g}", flag=flag, value=value), remedy=tr("give {what}", what=limit))
    return value


def find_machine(hw: str | None, peak_tflops: float | None, memory_gb: float | None) -> Machine:
    """Look the device up. Raises UsageError for a device that is not known or a memory that is not above 0."""
    device = find_device(hw) if hw is not None else None
    memory = positive("--memory-gb", memory_gb)
    return Machine(device, peak_tflops, device.hbm_gb if memory is None and device else memory)


def measure(log: str, formula: Formula, machine: Machine) -> Measured:
    """Facts that the log itself prints, and its delivered HFU: stalls are in, warm-up and replay are not."""
    run = load([log], Given((), {}))
    hw = machine.device.name if machine.device else None
    result = analyze_run(run, Choices(formula, hw, machine.peak_tflops))
    hfu = result.analysis.rates.row(by_predicate=pl.col("rate") == "delivered", named=True)["hfu"]
    printed = {name: fact for name, fact in run.context.facts.items() if not is_derived(fact)}
    if hfu is None:
        said = tr("the utilisation of {log} is not known: its shape, its device or its recompute is", log=log)
    else:
        said = tr("utilisation {share:.2%}: HFU delivered by {log}", share=hfu, log=log)
    return Measured(printed, hfu, (said,))


def short_facts(**sizes: int | None) -> dict[str, Fact]:
    """Facts from the short flags."""
    return {SHORT[name]: Fact(size, f"--{name}") for name, size in sizes.items() if size is not None}


def merge_facts(short: dict[str, Fact], beside: Given, measured: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts by quantity: flags, model, config, log, what is assumed. A shape or a layout is taken from one whole."""
    given = {name: fact for layer in reversed(beside.layers) for name, fact in layer.items()} | short
    shape = {f.name for f in fields(ModelShape)} | {"vocab_size", "padded_vocab_size"}
    layout = {*SHORT.values(), "virtual_pipeline_model_parallel_size", "zero_stage"}
    dropped = shape if "num_layers" in given else set()
    dropped |= layout if layout & given.keys() else set()
    printed = {name: fact for name, fact in measured.items() if name not in dropped}
    assumed = {name: Fact(value, tr("assumed")) for name, value in ASSUMED.items()}
    return derive(assumed | printed | given)


def plan_job(facts: Mapping[str, Fact], asked: Asked, machine: Machine, measured: float | None) -> Job:
    """Put together what is known and what is asked. Raises UsageError where nothing is known of the model."""
    if "num_layers" not in facts and "hidden_size" not in facts:
        remedy = tr("pass --model (`logparse models` lists them), --from LOG, or the shape: --num-layers and so on")
        raise UsageError(tr("nothing is known of the model"), remedy=remedy)
    values = {name: fact.value for name, fact in facts.items()}
    return Job(
        shape=ModelShape.from_quantities(values),
        vocab_size=values.get("vocab_size") or values.get("padded_vocab_size"),
        formula=asked.formula,
        fixed=_fixed(values, asked),
        training=_training(values, asked),
        details=asked.details,
        tokens=None if asked.tokens is None else round(asked.tokens),
        peak=machine.peak(values["precision"]),
        memory_gb=machine.memory_gb,
        link_gbps=machine.device.link_gbps if machine.device else None,
        network_gbits=NETWORK_GBITS if asked.network_gbits is None else asked.network_gbits,
        utilisation=measured if asked.utilisation is None else asked.utilisation,
        deadline_days=asked.days,
    )


def _fixed(values: Mapping[str, Any], asked: Asked) -> Fixed:
    """What of the layout is decided, by flags or by the log."""
    sizes = {name: values.get(quantity) for name, quantity in SHORT.items()}
    return Fixed(
        devices=sizes["devices"],
        tp=sizes["tp"],
        pp=sizes["pp"],
        dp=sizes["dp"],
        cp=sizes["cp"] or 1,
        ep=asked.ep or sizes["ep"],
        vpp=asked.vpp or values.get("virtual_pipeline_model_parallel_size") or 1,
        zero=values.get("zero_stage") if asked.zero is None else asked.zero,
        sequence_parallel=_switched(asked.sequence_parallel, values.get("sequence_parallel")),
    )


def _switched(asked: bool | None, known: bool | None) -> bool:
    """What the flag says, then the log; both switches are on in current frameworks."""
    return next((value for value in (asked, known) if value is not None), True)


def _training(values: Mapping[str, Any], asked: Asked) -> Training | None:
    """How a step is done; None where the sequence length is unknown."""
    if "seq_length" not in values:
        return None
    return Training(
        seq_length=values["seq_length"],
        micro_batch_size=values["micro_batch_size"],
        global_batch_size=values.get("global_batch_size"),
        recompute=cast("Recompute", values["recompute"]),
        dtype=values["precision"],
        flash_attention=_switched(asked.flash_attention, values.get("flash_attention")),
        dropout=asked.dropout,
    )
