"""From what is asked of a planned job to its estimate: facts of the user and of a log, the job, its notes.

Comes in: facts as given and the options that are none. Goes out: the estimate. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.estimate.job import Estimate, estimate
from analysis.estimate.job_inputs import (
    LAYOUT,
    SHORT,
    WHOLE,
    Asked,
    Machine,
    assumption_notes,
    merge_facts,
    mtp_notes,
    plan_job,
)
from analysis.flops import Formula
from analysis.model.shape import ModelShape
from analysis.published.baselines import published
from analysis.run.build import analyze_run
from analysis.run.checks.published_step import PublishedStep, step_at_published_rate
from analysis.run.load import Loaded, load
from analysis.run.options import RunOptions
from logparse.context.relations import is_derived
from logparse.context.run_context import Fact, Given
from logparse.findings import Note, Origin, info
from logparse.light_dataclass import dataclass, field, fields, replace


@dataclass(frozen=True)
class PlannedJob:
    """An estimate and its facts; ``name`` is that of the model, or of the log that gave them, None without.

    ``published`` is a step of the layout that is estimated, at a published rate.
    """

    name: str | None
    result: Estimate
    facts: Mapping[str, Fact]
    published: PublishedStep | None = None


def estimate_planned(
    given: Mapping[str, Fact], asked: Asked, machine: Machine, model: str | None, log: str | None
) -> PlannedJob:
    """Estimate the job of the facts ``given``, of ``model``, and of the ``log`` of a run.

    Raises UsageError for a job that cannot be, InputError or NoStepLineError for a log that cannot be read.
    """
    measured = measure(log, asked.formula, machine, given) if log else Measured()
    facts = merge_facts(given, measured.facts)
    job = plan_job(facts, asked, machine, measured.utilisation)
    result = estimate(job)
    notes = (
        *machine.notes(job.training),
        *measured.notes(facts, given, asked.utilisation),
        *assumption_notes(facts, result),
        *mtp_notes(model, facts),
        *result.notes,
    )
    device = machine.device.name if machine.device else None
    step = step_at_published_rate(job, result.fit.layout.devices, device, published()) if result.fit else None
    return PlannedJob(model or log, replace(result, notes=notes), facts, step)


SHAPE = {f.name for f in fields(ModelShape)} - {"padded_vocab_size"}
# By these a log and --model are known to mean one model; AscendSpeed prints some others wrong, such as the gated MLP.
TELLING = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_experts")
# Where the job differs from the run in one of these, it may reach another utilisation.
MATTERS = (
    *("num_layers", "hidden_size", "ffn_hidden_size", "num_experts", "seq_length", "recompute", "precision"),
    *("micro_batch_size", "global_batch_size", *(name for name in SHORT.values() if name in LAYOUT)),
)


NOTHING = Fact(None, Origin("not set"))


@dataclass(frozen=True)
class Measured:
    """What the log of --from says: ``facts`` that it prints, ``known`` of the run, the utilisation and its note."""

    log: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    known: Mapping[str, Fact] = field(default_factory=dict)
    utilisation: float | None = None
    note: Note | None = None

    def notes(self, facts: Mapping[str, Fact], given: Mapping[str, Fact], asked: float | None) -> Iterator[Note]:
        """What stays of the log's layout, and how a job of ``facts`` differs from what was measured."""
        yield from self._kept_layout(facts, given)
        yield from self._kept_shape(facts, given)
        if self.note is not None and asked is None:
            yield self.note
            yield from self._other_settings(facts)

    def _kept_layout(self, facts: Mapping[str, Fact], given: Mapping[str, Fact]) -> Iterator[Note]:
        unchanged = [n for n in SHORT.values() if n in LAYOUT and facts.get(n) == self.facts.get(n, NOTHING)]
        if unchanged and LAYOUT & given.keys():
            flags = {name: flag for flag, name in SHORT.items()}
            yield info(
                "layout_kept", log=self.log, flags=[f"--{flags[name]} {facts[name].value}" for name in unchanged]
            )

    def _kept_shape(self, facts: Mapping[str, Fact], given: Mapping[str, Fact]) -> Iterator[Note]:
        unchanged = [n for n in facts if n in SHAPE and n in self.facts and facts[n] == self.facts[n]]
        if unchanged and SHAPE & given.keys() and not given.keys() >= WHOLE:
            yield info("shape_kept", log=self.log, sizes=_values(unchanged, facts))

    def _other_settings(self, facts: Mapping[str, Fact]) -> Iterator[Note]:
        other = [n for n in MATTERS if n in self.known and n in facts and facts[n].value != self.known[n].value]
        if other and self.utilisation is not None:
            yield info("other_settings_measured", settings=_values(other, self.known))


def _values(names: Sequence[str], facts: Mapping[str, Fact]) -> list[Note]:
    return [info("named_value", name=name, value=facts[name].value) for name in names]


def measure(log: str, formula: Formula, machine: Machine, given: Mapping[str, Fact]) -> Measured:
    """Facts that the log prints, and its delivered HFU: stalls are in, warm-up and replay are not.

    What the log does not print is as ``given``, and so is its shape where that is of the same model.
    """
    device = machine.device.name if machine.device else None
    how = RunOptions(formula=formula, hw=device, peak_tflops=machine.peak_tflops)
    run = load([log], how)
    added = _missing_facts(run, given)
    if added:
        run = load([log], replace(how, given=Given((added,))))
    result = analyze_run(run, how)
    rate = result.analysis.rate("with_stalls")
    hfu, mfu = rate["hfu"], rate["mfu"]
    note = _utilisation_note(hfu, mfu, log)
    if added and mfu is not None:
        note = info("computed_with", said=note, origins=list(dict.fromkeys(fact.origin for fact in added.values())))
    facts = run.context.facts
    # Without its micro-batches another layout would lose the batch, without its own sizes the number of devices.
    whole = {"world_size", "global_batch_size"}
    printed = {name: fact for name, fact in facts.items() if name in whole or not is_derived(fact)}
    return Measured(log, printed, facts, mfu if hfu is None else hfu, note)


def _utilisation_note(hfu: float | None, mfu: float | None, log: str) -> Note:
    if hfu is not None:
        return info("hfu_with_stalls", share=hfu, log=log)
    if mfu is not None:
        return info("mfu_with_stalls", share=mfu, log=log)
    return info("utilisation_unknown", log=log)


def _missing_facts(run: Loaded, given: Mapping[str, Fact]) -> dict[str, Fact]:
    """What of ``given`` applies to the run too: what is not in its log, and the shape if it is the same model."""
    known, steps = run.context.facts, run.log.steps
    printed = {name for name, fact in known.items() if name not in SHAPE or not is_derived(fact)}
    printed |= {column.name for column in steps.iter_columns() if column.count()}
    # Of how the run was laid out, what is planned says nothing; without a number of devices there is no rate.
    printed |= LAYOUT - {"world_size"}
    if "num_layers" in given:
        printed = printed - SHAPE if _one_model(known, given) else printed | SHAPE | {"vocab_size"}
    return {name: fact for name, fact in given.items() if name not in printed}


def _one_model(known: Mapping[str, Fact], given: Mapping[str, Fact]) -> bool:
    return all(known[n].value == given.get(n, NOTHING).value for n in TELLING if n in known)
