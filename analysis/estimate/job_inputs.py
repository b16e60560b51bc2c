"""What ``logparse estimate`` is asked, put together: flags, a model, a config file, a device.

Comes in: options as given. Goes out: a Job. Nothing is estimated or printed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from analysis.estimate.assumptions import ASSUMED as ASSUMED_OF_RUNS
from analysis.estimate.device_layout import Training
from analysis.estimate.job import Estimate, Job
from analysis.estimate.layout_search import Fixed
from analysis.estimate.step import NETWORK_GBITS
from analysis.flops import Formula, Recompute
from analysis.hardware.devices import Device, DevicePeak, choose_peak, device_notes, find_device, peak_by_hand
from analysis.model.catalogue import find_model
from analysis.model.parameters import Details
from analysis.model.shape import ModelShape
from logparse.context.relations import derive
from logparse.context.run_context import OF_RECOMPUTE, Fact, Given
from logparse.errors import UsageError
from logparse.findings import Note, Origin, flag, info, warning
from logparse.language import tr
from logparse.light_dataclass import dataclass, fields
from logparse.schema import QUANTITY

# Flags of this command for quantities whose own flags are long, or that have none.
SHORT = {
    "devices": "world_size",
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "dp": "data_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "vpp": "virtual_pipeline_model_parallel_size",
    "zero": "zero_stage",
    "sequence_parallel": "sequence_parallel",
    "flash_attention": "flash_attention",
    "dropout": "dropout",
    "network_gbits": "network_gbits",
}
# Who gives these gives another model; one of them alone changes that of the log.
WHOLE = {"num_layers", "hidden_size"}
LAYOUT = {*list(SHORT.values())[:8], "expert_tensor_parallel_size"}
# Taken where neither the user nor a log says more, and shown as such; the same as for a run whose log is silent.
ASSUMED: dict[str, Any] = {name: value for name, value in ASSUMED_OF_RUNS.items() if name != "zero_stage"} | {
    "untie_embeddings_and_output_weights": True,
    "network_gbits": NETWORK_GBITS,
}
# The least and the most that can be meant; what is not named here is a whole number that a double holds.
RANGES: dict[str, tuple[float, float]] = {
    "zero_stage": (0, 3),
    # The deepest transformer that was published has 1,000.
    "num_layers": (1, 2000),
    "network_gbits": (1e-6, 1e20),
}


@dataclass(frozen=True)
class Asked:
    """Options that are no facts of a run."""

    formula: Formula
    details: Details
    tokens: float | None
    utilisation: float | None
    days: float | None

    def check(self) -> None:
        """Raises UsageError for a number that means nothing."""
        positive("--tokens", self.tokens, least=1)
        positive("--days", self.days)
        positive("--utilisation", self.utilisation, most=1)


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

    def notes(self, training: Training | None) -> tuple[Note, ...]:
        """Notes on the device and its peak."""
        dtype = training.dtype if training else ASSUMED["precision"]
        peak = self.peak(dtype)
        if self.device is None or peak is not None:
            return peak.notes if peak else ()
        return (warning("no_peak_known", dtype=dtype, device=self.device.name), *device_notes(self.device))


def positive(flag: str, value: float | None, least: float = 1e-6, most: float = 1e20) -> float | None:
    """``value`` as given. Raises UsageError unless it is a number from ``least`` to ``most``."""
    if value is not None:
        _check_range(flag, value, least, most)
    return value


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        remedy = tr("give a number from {least:g} to {most:g}", least=least, most=most)
        raise UsageError(tr("{name} is {value!r}", name=name, value=value), remedy=remedy)


def find_machine(hw: Fact | None, peak_tflops: Fact | None, memory_gb: float | None) -> Machine:
    """Look the device up. Raises UsageError for one that is not known and for a number that means nothing."""
    device = find_device(hw.value) if hw else None
    memory = positive("--memory-gb", memory_gb)
    memory = device.hbm_gb if memory is None and device else memory
    return Machine(device, positive("--peak-tflops", peak_tflops.value if peak_tflops else None), memory)


def short_facts(**sizes: float | bool | None) -> dict[str, Fact]:
    """Facts from the flags of this command."""
    return {SHORT[name]: Fact(size, flag(_flag(name, size))) for name, size in sizes.items() if size is not None}


def _flag(name: str, value: float | bool) -> str:
    return ("--no-" if value is False else "--") + name.replace("_", "-")


def all_given(short: dict[str, Fact], inputs: Given) -> dict[str, Fact]:
    """The facts that the user gave; flags override the model, and the model the config file.

    Raises UsageError where two flags for one quantity differ, and for a number out of range.
    """
    for name, fact in inputs.layers[0].items():
        if name in short and short[name].value != fact.value:
            first, second = (f"{f.origin} {f.value}" for f in (short[name], fact))
            problem = tr("{first} and {second} contradict each other", first=first, second=second)
            raise UsageError(problem, remedy=tr("give one of them"))
    flags = {**inputs.layers[0], **short}
    given = {name: fact for layer in reversed(inputs.layers) for name, fact in layer.items()} | flags
    for name, fact in given.items():
        if type(fact.value) in (int, float):
            least = QUANTITY[name].least if name in QUANTITY else 0
            _check_range(str(fact.origin) if name in flags else name, fact.value, *RANGES.get(name, (least, 2**53)))
    return given


def merge_facts(given: Mapping[str, Fact], printed: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts by quantity: what is ``given``, what the log printed, what is assumed; then what follows.

    A shape whose layers and width are given is taken whole. Of any other shape, and of a layout, each size that is not
    given stays; the copies of the model follow, or where those are given the number of devices.
    """
    shape = {f.name for f in fields(ModelShape)} | {"vocab_size", "padded_vocab_size"}
    dropped = shape if given.keys() >= WHOLE else set()
    if LAYOUT & given.keys():
        dropped |= {"world_size", "num_nodes"} if "data_parallel_size" in given else {"data_parallel_size"}
    if "pipeline_model_parallel_size" in given:
        dropped |= {"virtual_pipeline_model_parallel_size"}
    if "tensor_model_parallel_size" in given:
        dropped |= {"expert_tensor_parallel_size"}
    if {*LAYOUT, "global_batch_size", "micro_batch_size"} & given.keys():
        dropped |= {"num_microbatches"}
    if "vocab_size" in printed and {"tensor_model_parallel_size", "vocab_size"} & given.keys():
        dropped |= {"padded_vocab_size"}
    if "recompute" in given:
        dropped |= OF_RECOMPUTE
    facts_left = {name: fact for name, fact in printed.items() if name not in dropped}
    assumed = {name: Fact(value, Origin("assumed")) for name, value in ASSUMED.items()}
    return derive(assumed | facts_left | dict(given))


def mtp_notes(model: str | None, facts: Mapping[str, Fact]) -> Iterator[Note]:
    """Multi-token prediction that the named model has and the job does not count."""
    known_model = find_model(model) if model else None
    if known_model and known_model.shape.mtp_num_layers and "mtp_num_layers" not in facts:
        yield info("mtp_not_counted", model=known_model.name, depths=known_model.shape.mtp_num_layers)


def assumption_notes(facts: Mapping[str, Fact], result: Estimate) -> Iterator[Note]:
    """What is assumed and decides whether a layout fits."""
    fewest = result.fewest
    fits = [f for f in (result.fit, fewest.laid_out, fewest.at_all, fewest.recomputed, *result.layouts) if f]
    matters = any(f.layout.tp > 1 for f in fits) or not any(f.fits for f in fits)
    if facts["sequence_parallel"].origin.kind == "assumed" and fits and matters:
        yield info("sequence_parallel_assumed_off")


def plan_job(facts: Mapping[str, Fact], asked: Asked, machine: Machine, measured: float | None) -> Job:
    """Put together what is known and what is asked. Raises UsageError where nothing is known of the model."""
    if "num_layers" not in facts and "hidden_size" not in facts:
        remedy = tr("pass --model (`logparse models` lists them), --from LOG, or the shape: --num-layers and so on")
        raise UsageError(tr("the model is unknown"), remedy=remedy)
    values = {name: fact.value for name, fact in facts.items()}
    return Job(
        shape=ModelShape.from_quantities(values).all_trained,
        vocab_size=values.get("vocab_size") or values.get("padded_vocab_size"),
        formula=asked.formula,
        fixed=_fixed(facts),
        training=_training(values),
        details=asked.details,
        tokens=None if asked.tokens is None else round(asked.tokens),
        peak=machine.peak(values["precision"]),
        memory_gb=machine.memory_gb,
        link_gbps=machine.device.link_gbps if machine.device else None,
        network_gbits=values["network_gbits"],
        utilisation=measured if asked.utilisation is None else asked.utilisation,
        deadline_days=asked.days,
    )


def _fixed(facts: Mapping[str, Fact]) -> Fixed:
    """What of the layout is decided, by flags or by the log."""
    values = {name: fact.value for name, fact in facts.items()}
    tp, pp, dp, cp, ep = (values.get(SHORT[axis]) for axis in ("tp", "pp", "dp", "cp", "ep"))
    return Fixed(
        *(values.get("world_size"), tp, pp, dp, cp or 1, ep),
        vpp=values[SHORT["vpp"]],
        zero=values.get("zero_stage"),
        sequence_parallel=values["sequence_parallel"],
        etp=values.get("expert_tensor_parallel_size"),
        # Where no flag gives it a framework did run it.
        uneven=facts[SHORT["vpp"]].origin.kind != "flag",
    )


def _training(values: Mapping[str, Any]) -> Training | None:
    """How a step is done; None where the sequence length is unknown."""
    if "seq_length" not in values:
        return None
    return Training(
        seq_length=values["seq_length"],
        micro_batch_size=values["micro_batch_size"],
        global_batch_size=values.get("global_batch_size"),
        # A run that names no layer recomputes nothing, whatever its method.
        recompute=cast("Recompute", "none" if values.get("recomputed_layers") == 0 else values["recompute"]),
        recomputed_layers=values.get("recomputed_layers"),
        dtype=values["precision"],
        flash_attention=values["flash_attention"],
        dropout=values["dropout"],
    )
