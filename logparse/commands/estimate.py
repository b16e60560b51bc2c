"""``logparse estimate``: what a training job should need and give, before it runs. Reads options, calls, prints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, cast

import polars as pl
import typer

from analysis.devices import Device, DevicePeak, choose_peak, find_device, peak_by_hand
from analysis.estimate import Estimate, Fit, Fixed, Job, Training
from analysis.estimate import estimate as estimate_job
from analysis.estimate.step import NETWORK_GBITS
from analysis.flops import Formula, Recompute, find_formula
from analysis.models import find_model
from analysis.outputs import check_folder, prepare_folder, write_charts
from analysis.parameters import NO_DETAILS, Details
from analysis.shape import ModelShape
from logparse.commands import _options as options
from logparse.commands._console import make_console
from logparse.commands._estimate_parts import estimate_document, estimate_parts
from logparse.commands._given import with_quantity_flags
from logparse.commands._load import Given, gather, load
from logparse.commands._markdown import markdown
from logparse.commands._results import Choices, analyze_run
from logparse.commands._terminal import print_parts
from logparse.derivations import derive, is_derived
from logparse.errors import UsageError
from logparse.language import msg, tr
from logparse.run_context import Fact

LAYOUT = "Layout of the job"
GOAL = "What is asked"
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
ASSUMED: dict[str, Any] = {"micro_batch_size": 1, "recompute": "none", "precision": "bf16"}


def _size(flag: str, text: str) -> Any:
    return typer.Option(flag, min=1, help=text, rich_help_panel=LAYOUT)


def _amount(flag: str, text: str, panel: str = GOAL) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=panel)


def _switch(name: str, text: str) -> Any:
    return typer.Option(f"--{name}/--no-{name}", help=text, rich_help_panel=LAYOUT)


Size = int | None
Amount = float | None
Devices = Annotated[
    Size, _size("--devices", msg("Devices of the job (dp x tp x pp x cp). Alone: every layout of that many is tried."))
]
Tp = Annotated[Size, _size("--tp", msg("Tensor parallel size: devices that share each matrix."))]
Pp = Annotated[Size, _size("--pp", msg("Pipeline parallel size: stages the layers are cut into."))]
Dp = Annotated[Size, _size("--dp", msg("Data parallel size: copies of the model, each with its part of the batch."))]
Cp = Annotated[Size, _size("--cp", msg("Context parallel size: devices that share each sequence."))]
Ep = Annotated[Size, _size("--ep", msg("Expert parallel size: data-parallel devices that share the experts."))]
Vpp = Annotated[Size, _size("--vpp", msg("Interleaving: chunks of layers in each pipeline stage; 1 is none."))]
Zero = Annotated[
    int | None,
    typer.Option(
        "--zero",
        min=0,
        max=3,
        help=msg(
            "ZeRO: data-parallel ranks share nothing (0), optimizer state (1), gradients too (2), weights too (3)."
        ),
        rich_help_panel=LAYOUT,
    ),
]
SequenceParallel = Annotated[
    bool, _switch("sequence-parallel", msg("Tensor-parallel ranks share norms and dropouts too."))
]
Flash = Annotated[bool, _switch("flash-attention", msg("Attention that keeps no matrix of tokens by tokens."))]
Dropout = Annotated[
    bool, _switch("dropout", msg("The model has dropout and keeps its masks; LLaMA and what came after have none."))
]
Tokens = Annotated[Amount, _amount("--tokens", msg("Tokens to train on, such as 2e12."))]
Utilisation = Annotated[
    Amount, _amount("--utilisation", msg("Share of the peak that is reached, such as 0.4, recomputation counted."))
]
Days = Annotated[Amount, _amount("--days", msg("Deadline in days: how many devices are needed."))]
MemoryGb = Annotated[
    Amount, _amount("--memory-gb", msg("Memory of one device in GB (1e9 bytes); wins over --hw."), options.MODEL)
]
Network = Annotated[
    Amount, _amount("--network-gbits", msg("Network of one device between nodes, Gbit/s; 200 unless given."), LAYOUT)
]
FromLog = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LOG",
        help=msg("Take shape, layout, batch and the delivered utilisation from the log of a run."),
        rich_help_panel=GOAL,
    ),
]


@with_quantity_flags
def estimate(
    given: dict[str, Any],
    model: options.Model = None,
    hw: options.Hardware = None,
    peak_tflops: options.PeakTflops = None,
    memory_gb: MemoryGb = None,
    formula: options.FormulaName = None,
    config: options.Config = None,
    devices: Devices = None,
    tp: Tp = None,
    pp: Pp = None,
    dp: Dp = None,
    cp: Cp = None,
    ep: Ep = None,
    vpp: Vpp = None,
    zero: Zero = None,
    sequence_parallel: SequenceParallel = True,
    flash_attention: Flash = True,
    dropout: Dropout = False,
    network_gbits: Network = None,
    tokens: Tokens = None,
    utilisation: Utilisation = None,
    days: Days = None,
    from_log: FromLog = None,
    out: options.Out = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    no_color: options.NoColor = False,
    force: options.Force = False,
    lang: options.Language = None,
) -> None:
    """Say what a training job should need before it runs: size, memory of each pipeline stage, time, devices.

    Give a model and a device, for example: logparse estimate --model llama2-13b --hw a100 --devices 8
    --seq-length 4096. Every figure stands beside its formula with the numbers filled in. Where a rule of thumb and the
    exact count differ, both are shown. What cannot be computed names the flag that would give it.

    GB are 1e9 bytes. Memory is what the model needs; the driver, the communication library and gaps in the allocator
    take some more.

    Exit code 0 done, also where nothing fits, 2 wrong usage or unreadable input.
    """
    if as_json and as_markdown:
        raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))
    if out is not None:
        check_folder(out, force)
    short = {"devices": devices, "tp": tp, "pp": pp, "dp": dp, "cp": cp}
    beside = gather(given, model, config)
    machine = _machine(hw or beside.options.get("hw"), peak_tflops, memory_gb)
    asked = _Asked(
        formula=find_formula(formula or beside.options.get("formula") or "megatron"),
        details=find_model(model).details if model else NO_DETAILS,
        zero=zero,
        vpp=vpp or 1,
        ep=ep,
        sequence_parallel=sequence_parallel,
        flash_attention=flash_attention,
        dropout=dropout,
        network_gbits=_positive("--network-gbits", network_gbits) or NETWORK_GBITS,
        tokens=_positive("--tokens", tokens),
        utilisation=_positive("--utilisation", utilisation, 1.0),
        days=_positive("--days", days),
    )
    measured = _measure(from_log, asked.formula, hw, peak_tflops) if from_log else _Measured()
    facts = _merge(_short_facts(short), beside, measured.facts)
    job = _job(facts, asked, machine, measured.utilisation)
    result = estimate_job(job)
    notes = (*machine.notes(job.training), *measured.notes, *result.notes)
    _print(model or from_log or tr("a model"), replace(result, notes=notes), facts, as_json, as_markdown, no_color)
    if out is not None and result.fit is not None:
        _write(result.fit, out)
        make_console(stderr=True, no_color=no_color).print(tr("wrote {folder}/", folder=out))


@dataclass(frozen=True)
class _Asked:
    """Options that are no facts of a run."""

    formula: Formula
    details: Details
    zero: int | None
    vpp: int
    ep: int | None
    sequence_parallel: bool
    flash_attention: bool
    dropout: bool
    network_gbits: float
    tokens: float | None
    utilisation: float | None
    days: float | None


@dataclass(frozen=True)
class _Machine:
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
class _Measured:
    """What the log of --from says."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    utilisation: float | None = None
    notes: tuple[str, ...] = ()


def _positive(flag: str, value: float | None, most: float = math.inf) -> float | None:
    """``value`` as given. Raises UsageError unless it is above 0 and not above ``most``."""
    if value is not None and not 0 < value <= most:
        limit = tr("a number above 0") if most == math.inf else tr("a share above 0 and up to 1, such as 0.4")
        raise UsageError(tr("{flag} is {value:g}", flag=flag, value=value), remedy=tr("give {what}", what=limit))
    return value


def _machine(hw: str | None, peak_tflops: float | None, memory_gb: float | None) -> _Machine:
    device = find_device(hw) if hw is not None else None
    memory = _positive("--memory-gb", memory_gb)
    return _Machine(device, peak_tflops, device.hbm_gb if memory is None and device else memory)


def _measure(log: str, formula: Formula, hw: str | None, peak_tflops: float | None) -> _Measured:
    """Facts that the log itself prints, and its delivered HFU: stalls are in, warm-up and replay are not."""
    run = load([log], Given((), {}))
    result = analyze_run(run, Choices(formula, hw, peak_tflops))
    hfu = result.analysis.rates.row(by_predicate=pl.col("rate") == "delivered", named=True)["hfu"]
    printed = {name: fact for name, fact in run.context.facts.items() if not is_derived(fact)}
    if hfu is None:
        said = tr("the utilisation of {log} is not known: its shape, its device or its recompute is", log=log)
    else:
        said = tr("utilisation {share:.2%}: HFU delivered by {log}", share=hfu, log=log)
    return _Measured(printed, hfu, (said,))


def _short_facts(sizes: Mapping[str, int | None]) -> dict[str, Fact]:
    return {SHORT[name]: Fact(size, f"--{name}") for name, size in sizes.items() if size is not None}


def _merge(short: dict[str, Fact], beside: Given, measured: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts by quantity: flags, model, config, log, what is assumed. A shape or a layout is taken from one whole."""
    given = {name: fact for layer in reversed(beside.layers) for name, fact in layer.items()} | short
    layout, shape = set(SHORT.values()), {f.name for f in fields(ModelShape)} | {"vocab_size", "padded_vocab_size"}
    dropped = shape if "num_layers" in given else set()
    dropped |= layout if layout & given.keys() else set()
    printed = {name: fact for name, fact in measured.items() if name not in dropped}
    assumed = {name: Fact(value, tr("assumed")) for name, value in ASSUMED.items()}
    return derive(assumed | printed | given)


def _job(facts: Mapping[str, Fact], asked: _Asked, machine: _Machine, measured: float | None) -> Job:
    values = {name: fact.value for name, fact in facts.items()}
    sizes = {name: values.get(quantity) for name, quantity in SHORT.items()}
    fixed = Fixed(
        **(sizes | {"cp": sizes["cp"] or 1, "ep": asked.ep or sizes["ep"]}),
        vpp=asked.vpp,
        zero=asked.zero,
        sequence_parallel=asked.sequence_parallel,
    )
    return Job(
        shape=ModelShape.from_quantities(values),
        vocab_size=values.get("vocab_size") or values.get("padded_vocab_size"),
        formula=asked.formula,
        fixed=fixed,
        training=_training(values, asked),
        details=asked.details,
        tokens=None if asked.tokens is None else round(asked.tokens),
        peak=machine.peak(values["precision"]),
        memory_gb=machine.memory_gb,
        link_gbps=machine.device.link_gbps if machine.device else None,
        network_gbits=asked.network_gbits,
        utilisation=measured if asked.utilisation is None else asked.utilisation,
        deadline_days=asked.days,
    )


def _training(values: Mapping[str, Any], asked: _Asked) -> Training | None:
    """How a step is done; None where the sequence length is unknown."""
    if "seq_length" not in values:
        return None
    return Training(
        seq_length=values["seq_length"],
        micro_batch_size=values["micro_batch_size"],
        global_batch_size=values.get("global_batch_size"),
        recompute=cast("Recompute", values["recompute"]),
        dtype=values["precision"],
        flash_attention=asked.flash_attention,
        dropout=asked.dropout,
    )


def _print(
    name: str, result: Estimate, facts: Mapping[str, Fact], as_json: bool, as_markdown: bool, no_color: bool
) -> None:
    if as_json:
        typer.echo(json.dumps(estimate_document(name, result, facts), indent=1, ensure_ascii=False, allow_nan=False))
    elif as_markdown:
        typer.echo(markdown(estimate_parts(name, result, facts)))
    else:
        print_parts(make_console(no_color=no_color), estimate_parts(name, result, facts))


def _write(fit: Fit, out: Path) -> None:
    """The chart of memory by stage."""
    from analysis.estimate.chart import memory_chart

    prepare_folder(out)
    write_charts({"memory": memory_chart(fit)}, out / "charts")
