"""A planned training job, and everything that can be computed for it before it runs.

Comes in: a Job. Goes out: an Estimate: figures by section, memory by stage, layouts that fit. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.estimate.activations import rule_figures
from analysis.estimate.assumptions import ADAM, CHEAT_SHEET, KORTHIKANTI, NOTE_13B
from analysis.estimate.device_layout import Layout, Training, check_model, layout_notes
from analysis.estimate.layout_search import NODE, Fit, Fixed, Search, all_fits, smallest_fit
from analysis.estimate.parameter_figures import parameter_figures
from analysis.estimate.stages import Stage, rule_of_thumb_stages
from analysis.estimate.state import replica_figure, state_bytes, state_figures
from analysis.estimate.step import (
    bubble_figures,
    link_seconds,
    network_seconds,
    share_of_step,
    step_time,
    traffic_bytes,
)
from analysis.estimate.work import (
    DAY,
    TYPICAL_UTILISATION,
    Work,
    deadline_figures,
    flops_figures,
    flops_per_token,
    time_figures,
)
from analysis.estimate.worked_figure import Figure, Number
from analysis.flops import Formula
from analysis.hardware.devices import DevicePeak
from analysis.model.parameters import NO_DETAILS, Details, Parameters, count_parameters
from analysis.model.shape import ModelShape
from logparse.errors import UsageError
from logparse.findings import Note, info, warning
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace

# Formulas of a stage; the table of stages has the numbers.
STATE_OF_STAGE = "parameters x bytes left by ZeRO"
ACTIVATIONS_OF_STAGE = "tokens x in flight x layers x bytes kept per token, and what is once"


@dataclass(frozen=True)
class Job:
    """What is planned; None is unknown. GB are 1e9 bytes, links GB/s per direction, the network Gbit/s of a device.

    ``utilisation`` is the share of the peak that is executed (HFU), recomputation in.
    """

    shape: ModelShape
    vocab_size: int | None
    formula: Formula
    fixed: Fixed
    training: Training | None
    details: Details = NO_DETAILS
    tokens: int | None = None
    peak: DevicePeak | None = None
    memory_gb: float | None = None
    link_gbps: float | None = None
    network_gbits: float = 200.0
    utilisation: float | None = None
    deadline_days: float | None = None


@dataclass(frozen=True)
class Section:
    """Figures that belong together, called by the code ``name``."""

    name: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Smallest:
    """The layouts that need fewest devices; None where none fits.

    ``laid_out`` keeps the sizes that the user gave. ``at_all`` may split the model in any way. ``recomputed`` may too,
    with everything recomputed; it is searched only where nothing fits without.
    """

    laid_out: Fit | None = None
    at_all: Fit | None = None
    recomputed: Fit | None = None


@dataclass(frozen=True)
class Estimate:
    """The results for a job. ``rule`` holds the bytes of each stage of ``fit`` by the note's rule."""

    sections: tuple[Section, ...]
    fit: Fit | None
    rule: tuple[float, ...] | None
    layouts: tuple[Fit, ...]
    fewest: Smallest
    notes: tuple[Note, ...]

    @property
    def smallest(self) -> Fit | None:
        """The layout of the sizes given that fits on the fewest devices."""
        return self.fewest.laid_out

    def value(self, name: str) -> Number | None:
        """One figure by name; None where it could not be computed or is not there."""
        return next((f.value for section in self.sections for f in section.figures if f.name == name), None)


def estimate(job: Job) -> Estimate:
    """Compute the Estimate of ``job``. Raises UsageError for a layout that no framework can run."""
    if job.shape.padded_vocab_size is None:
        job = replace(job, shape=replace(job.shape, padded_vocab_size=job.vocab_size))
    check_model(job.shape, job.vocab_size, job.training)
    counted = count_parameters(job.shape, job.vocab_size, details=job.details, include_mtp=True)
    # The model has its vocabulary, the devices hold the padded one.
    held = count_parameters(job.shape, job.shape.padded_vocab_size, details=job.details, include_mtp=True)
    search = _search(job, held)
    layouts = _tried(search, job.fixed) if search else ()
    fewest = _smallest(search, job.fixed) if search else Smallest()
    fit = _chosen(search, job.fixed, layouts, fewest) if search else None
    sections = tuple(_sections(job, counted, fit))
    values = {f.name: f.value for section in sections for f in section.figures}
    return Estimate(
        sections=sections,
        fit=fit,
        rule=rule_stages(job, counted, fit.layout) if fit and counted else None,
        layouts=layouts,
        fewest=fewest,
        notes=(*_notes(job, counted, fit), *_warnings(job, fit, values)),
    )


def rule_stages(job: Job, counted: Parameters, layout: Layout) -> tuple[float, ...] | None:
    """Bytes of each stage by the note's rule; None for a mixture of experts, which it does not know."""
    if job.training is None or counted.moe or layout.vpp > 1 or layout.cp > 1 or job.training.recompute == "full":
        return None
    activations = next(f.value for f in rule_figures(job.shape, job.training) if f.name == "activations_rule")
    state = state_bytes(job.training.dtype)
    return None if activations is None else rule_of_thumb_stages(counted.total, activations, layout, state)


def _search(job: Job, counted: Parameters | None) -> Search | None:
    if counted is None or job.training is None or job.vocab_size is None:
        return None
    memory = None if job.memory_gb is None else job.memory_gb * 1e9
    return Search(job.shape, counted, job.shape.padded_vocab_size or job.vocab_size, job.training, memory, job.details)


def _tried(search: Search, fixed: Fixed) -> tuple[Fit, ...]:
    """Every layout on the devices given; ZeRO-2 and 3, which cost most traffic, only where nothing fits without."""
    if fixed.devices is None:
        return ()
    fits = all_fits(search, fixed, fixed.devices)
    if search.memory_bytes is None or any(f.fits for f in fits):
        return fits
    return all_fits(search, fixed, fixed.devices, (0, 1, 2, 3))


def _smallest(search: Search, fixed: Fixed) -> Smallest:
    laid_out = smallest_fit(search, fixed)
    bound = replace(fixed, devices=None, dp=None)
    free = laid_out if bound == fixed.freed else smallest_fit(search, fixed.freed)
    # Sizes that the free search does not try, such as tp 16, can do with fewer.
    at_all = min((f for f in (laid_out, free) if f), key=lambda f: f.layout.devices, default=None)
    if at_all or search.training.recompute == "full" or search.memory_bytes is None:
        return Smallest(laid_out, at_all)
    full = replace(search, training=replace(search.training, recompute="full"))
    return Smallest(recomputed=smallest_fit(full, fixed.freed))


def _chosen(search: Search, fixed: Fixed, layouts: tuple[Fit, ...], fewest: Smallest) -> Fit:
    """The layout the user gave; else the least split that fits on the devices; without those the smallest that fits."""
    if fixed.tp is None and fixed.pp is None and fixed.dp is None:
        if layouts:
            fitting = next((f for f in layouts if f.fits), None)
            return fitting or min(layouts, key=lambda f: f.worst.total_bytes)
        if fewest.laid_out and fixed.devices is None:
            return fewest.laid_out
    return search.fit(_given(fixed))


def _given(fixed: Fixed) -> Layout:
    """The layout as given; what is left of the devices is data parallel."""
    tp, pp = fixed.tp or 1, fixed.pp or 1
    dp = fixed.dp or 1
    if fixed.devices is not None:
        whole, rest = divmod(fixed.devices, tp * pp * fixed.cp)
        if rest or not whole or fixed.dp not in (None, whole):
            sizes = f"tp {tp} x pp {pp} x cp {fixed.cp}" + (f" x dp {fixed.dp}" if fixed.dp else "")
            text = tr("{n} devices cannot be split into {sizes}", n=fixed.devices, sizes=sizes)
            raise UsageError(text, remedy=tr("change --devices or the sizes"))
        dp = whole
    layout = Layout(tp, pp, dp, fixed.cp, fixed.ep or 1, fixed.vpp, fixed.zero or 0, fixed.sequence_parallel)
    return replace(layout, etp=fixed.etp, uneven=fixed.uneven)


def _sections(job: Job, counted: Parameters | None, fit: Fit | None) -> Iterator[Section]:
    total = counted.total if counted else None
    yield Section("size", parameter_figures(job.shape, job.vocab_size, counted))
    dtype = job.training.dtype if job.training else "bf16"
    states = (*state_figures(total, dtype), replica_figure(total, job.memory_gb, dtype))
    rules = rule_figures(job.shape, job.training) if job.training else ()
    yield Section("whole_model", states + rules)
    if fit is not None:
        yield Section("fullest_stage", tuple(_stage_figures(fit.worst)))
    if job.training is not None:
        work = _work(job, counted, fit)
        yield Section("work_and_time", tuple(_work_figures(job, work, job.training)))
        if fit is not None:
            yield Section("inside_a_step", tuple(_step_figures(job, fit.layout, job.training)))


def _stage_figures(stage: Stage) -> Iterator[Figure]:
    """The working of one row of the table of stages; the state by both rules where there are two."""
    in_fp32 = stage.state_20_bytes is None
    label, source = ("stage_state_16", ADAM) if in_fp32 else ("stage_state_18", NOTE_13B)
    yield Figure("stage_state", label, "bytes", stage.state_bytes, STATE_OF_STAGE, stage.state_worked, source)
    if not in_fp32:
        size, worked, name = stage.state_20_bytes, stage.state_20_worked, "stage_state_20"
        yield Figure(name, name, "bytes", size, STATE_OF_STAGE, worked, CHEAT_SHEET)
    size, worked, name = stage.activation_bytes, stage.activation_worked, "stage_activations"
    yield Figure(name, name, "bytes", size, ACTIVATIONS_OF_STAGE, worked, KORTHIKANTI)


def _work(job: Job, counted: Parameters | None, fit: Fit | None) -> Work:
    devices = job.fixed.devices or (fit.layout.devices if fit else None)
    peak = job.peak.peak_tflops_per_second if job.peak else None
    recompute = job.training.recompute if job.training else "none"
    return Work(counted.active if counted else None, job.tokens, devices, peak, job.utilisation, recompute)


def _work_figures(job: Job, work: Work, training: Training) -> Iterator[Figure]:
    yield from flops_figures(work, _per_token(job, training))
    yield from time_figures(work, _per_token(job, training))
    if job.deadline_days is not None:
        yield from deadline_figures(work, job.deadline_days * DAY, _per_token(job, training))


def _step_figures(job: Job, layout: Layout, training: Training) -> Iterator[Figure]:
    micro_batches = training.micro_batches(layout.dp)
    peak = job.peak.peak_tflops_per_second if job.peak else None
    step = step_time(_per_token(job, training), training, layout.devices, peak, job.utilisation)
    yield step
    yield from bubble_figures(layout, micro_batches)
    if layout.tp > 1:
        traffic = traffic_bytes(job.shape, layout, training, micro_batches)
        link, network = link_seconds(traffic, job.link_gbps), network_seconds(traffic, job.network_gbits)
        yield from (traffic, link, network)
        yield share_of_step("link_share", link, step)
        yield share_of_step("network_share", network, step)


def _per_token(job: Job, training: Training) -> Figure:
    return flops_per_token(job.shape, job.formula, training.seq_length, training.recomputation(job.shape.num_layers))


def _notes(job: Job, counted: Parameters | None, fit: Fit | None) -> Iterator[Note]:
    yield from _missing(job, counted)
    if fit is not None:
        yield from _assumed(job, fit)
    if job.utilisation is None and job.tokens is not None:
        yield info("times_at_usual_utilisation")
    if fit is not None and job.training is not None and job.training.global_batch_size is None:
        yield info("micro_batches_fill_pipeline")


def _missing(job: Job, counted: Parameters | None) -> Iterator[Note]:
    """What is missing for the stages, and for the layouts that fit."""
    if job.training is None:
        yield info("stages_need_seq_length")
    elif counted is None:
        yield info("stages_need_shape")
    elif job.memory_gb is None:
        yield info("fit_needs_memory")


def _assumed(job: Job, fit: Fit) -> Iterator[Note]:
    """What is assumed about a layout, and what does not divide in it."""
    if len({stage.layers for stage in fit.stages}) > 1:
        yield info("layers_do_not_divide", pp=fit.layout.pp)
    yield from layout_notes(job.shape, fit.layout)
    if job.fixed.zero is None and not fit.layout.zero and fit.layout.zero_degree > 1:
        yield info("zero_assumed_off")


def _warnings(job: Job, fit: Fit | None, values: dict[str, Number | None]) -> Iterator[Note]:
    """Results that are impossible, or valid only under a condition that no size of the job shows."""
    ceiling = values.get("bubble_ceiling")
    reached = max(TYPICAL_UTILISATION) if job.utilisation is None and job.tokens is not None else job.utilisation
    if ceiling is not None and reached is not None and reached > ceiling:
        yield warning("utilisation_above_ceiling", share=reached, ceiling=ceiling)
    if fit is not None and fit.layout.tp > NODE:
        yield warning("tensor_parallel_beyond_node", tp=fit.layout.tp)
    for place in ("link", "network"):
        if (share := values.get(f"{place}_share")) is not None and share > 1:
            yield warning(f"{place}_slower_than_step", share=share)
