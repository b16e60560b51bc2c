"""A planned training job, and everything that can be said of it before it runs.

Comes in: a Job. Goes out: an Estimate: figures by section, memory by stage, layouts that fit. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.devices import DevicePeak
from analysis.estimate.activations import KORTHIKANTI, rule_figures
from analysis.estimate.fit import Fit, Fixed, Search, all_fits, smallest_fit
from analysis.estimate.layout import Layout, Training
from analysis.estimate.parameters import NOTE_13B, parameter_figures
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
from analysis.estimate.work import DAY, Work, deadline_figures, flops_figures, flops_per_token, time_figures
from analysis.estimate.worked import Figure
from analysis.flops import Formula
from analysis.parameters import NO_DETAILS, Details, Parameters, count_parameters
from analysis.shape import ModelShape
from logparse.errors import UsageError
from logparse.language import msg, tr


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
    """Figures that belong together."""

    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Estimate:
    """What can be said of a job. ``rule`` holds the bytes of each stage of ``fit`` by the note's rule."""

    sections: tuple[Section, ...]
    fit: Fit | None
    rule: tuple[float, ...] | None
    layouts: tuple[Fit, ...]
    smallest: Fit | None
    notes: tuple[str, ...]

    def value(self, name: str) -> int | float | None:
        """One figure by name; None where it could not be computed or is not there."""
        return next((f.value for section in self.sections for f in section.figures if f.name == name), None)


def estimate(job: Job) -> Estimate:
    """Compute all there is to know. Raises UsageError for a layout that no framework can run."""
    if job.shape.padded_vocab_size is None:
        job = replace(job, shape=replace(job.shape, padded_vocab_size=job.vocab_size))
    counted = count_parameters(job.shape, job.vocab_size, details=job.details)
    search = _search(job, counted)
    fit = _chosen(search, job.fixed) if search else None
    layouts = all_fits(search, job.fixed, job.fixed.devices) if search and job.fixed.devices else ()
    return Estimate(
        sections=tuple(_sections(job, counted, fit)),
        fit=fit,
        rule=rule_stages(job, counted, fit.layout) if fit and counted else None,
        layouts=layouts,
        smallest=smallest_fit(search, job.fixed) if search else None,
        notes=tuple(_notes(job, counted, fit)),
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
    return Search(job.shape, counted, job.vocab_size, job.training, memory)


def _chosen(search: Search, fixed: Fixed) -> Fit:
    """The layout the user gave; else the least split that fits on the devices; without those the smallest that fits."""
    if fixed.tp is None and fixed.pp is None and fixed.dp is None:
        fits = all_fits(search, fixed, fixed.devices) if fixed.devices else ()
        fitting = next((f for f in fits if f.fits), None)
        if fitting or fits:
            return fitting or min(fits, key=lambda f: f.worst.total_bytes)
        smallest = None if fixed.devices else smallest_fit(search, fixed)
        if smallest:
            return smallest
    return search.fit(_given(fixed))


def _given(fixed: Fixed) -> Layout:
    """The layout as given; what is left of the devices is data parallel."""
    tp, pp = fixed.tp or 1, fixed.pp or 1
    dp = fixed.dp or 1
    if fixed.devices is not None:
        whole, rest = divmod(fixed.devices, tp * pp * fixed.cp)
        if rest or not whole or fixed.dp not in (None, whole):
            sizes = f"tp {tp} x pp {pp} x cp {fixed.cp}" + (f" x dp {fixed.dp}" if fixed.dp else "")
            text = tr("{n} devices cannot be laid out as {sizes}", n=fixed.devices, sizes=sizes)
            raise UsageError(text, remedy=tr("change --devices or the sizes"))
        dp = whole
    return Layout(tp, pp, dp, fixed.cp, fixed.ep or 1, fixed.vpp, fixed.zero or 0, fixed.sequence_parallel)


def _sections(job: Job, counted: Parameters | None, fit: Fit | None) -> Iterator[Section]:
    total = counted.total if counted else None
    yield Section(msg("size"), parameter_figures(job.shape, job.vocab_size, counted))
    states = (*state_figures(total), replica_figure(total, job.memory_gb))
    rules = rule_figures(job.shape, job.training) if job.training else ()
    yield Section(msg("memory of the whole model"), states + rules)
    if fit is not None:
        yield Section(msg("memory of the fullest stage"), _stage_figures(fit.worst))
    if job.training is not None:
        work = _work(job, counted, fit)
        yield Section(msg("work and time"), tuple(_work_figures(job, work, job.training)))
        if fit is not None:
            yield Section(msg("inside a step"), tuple(_step_figures(job, fit.layout, job.training)))


def _stage_figures(stage: Stage) -> tuple[Figure, ...]:
    """The working of one row of the table of stages."""
    state, kept = msg("weights, gradients, optimizer"), msg("activations")
    how = (
        msg("parameters x bytes left by ZeRO"),
        msg("tokens x in flight x layers x bytes kept per token, and what is once"),
    )
    return (
        Figure("stage_state", state, "bytes", stage.state_bytes, how[0], stage.state_worked, NOTE_13B),
        Figure(
            "stage_activations", kept, "bytes", stage.activation_bytes, how[1], stage.activation_worked, KORTHIKANTI
        ),
    )


def _work(job: Job, counted: Parameters | None, fit: Fit | None) -> Work:
    devices = job.fixed.devices or (fit.layout.devices if fit else None)
    peak = job.peak.peak_tflops_per_second if job.peak else None
    recompute = job.training.recompute if job.training else "none"
    return Work(counted.active if counted else None, job.tokens, devices, peak, job.utilisation, recompute)


def _work_figures(job: Job, work: Work, training: Training) -> Iterator[Figure]:
    yield from flops_figures(work, job.shape, job.formula, training.seq_length)
    yield from time_figures(work, _per_token(job, training))
    if job.deadline_days is not None:
        yield from deadline_figures(work, job.deadline_days * DAY)


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
        yield share_of_step("link_share", msg("inside a node, share of the step"), link, step)
        yield share_of_step("network_share", msg("between nodes, share of the step"), network, step)


def _per_token(job: Job, training: Training) -> Figure:
    return flops_per_token(job.shape, job.formula, training.seq_length, training.recompute)


def _notes(job: Job, counted: Parameters | None, fit: Fit | None) -> Iterator[str]:
    if job.training is None:
        yield tr("memory by stage not computed: needs {flags}", flags="--seq-length")
    elif counted is None:
        yield tr("memory by stage not computed: needs {flags}", flags=tr("--model, or the whole shape by flags"))
    elif job.memory_gb is None:
        yield tr("whether it fits is not known: needs {flags}", flags=tr("--hw or --memory-gb"))
    if fit is not None and len({stage.layers for stage in fit.stages}) > 1:
        yield tr("the layers do not divide into {pp} stages: the first ones hold one more", pp=fit.layout.pp)
    if fit is not None and job.fixed.zero is None and not fit.layout.zero and fit.layout.zero_degree > 1:
        yield tr("ZeRO is taken as 0, nothing shared out: pass --zero")
    if job.utilisation is None and job.tokens is not None:
        yield tr(
            "without --utilisation times are given at 0.3 and at 0.5 of the peak, the usual range of large clusters"
        )
    if fit is not None and job.training is not None and job.training.global_batch_size is None:
        yield tr("without --global-batch-size as many micro-batches are taken as the pipeline can hold")
