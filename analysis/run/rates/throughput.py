"""Rates per step: columns added to the steps frame.

Comes in: steps with ``step_time_ms``, the run's context, a formula, a peak. Goes out: samples/s/p, tokens/s/p,
TFLOP/s/p, peak utilization, MFU and HFU on every row, null where an input is unknown, with one sentence that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import polars as pl
import regex

from analysis.flops import (
    ELEMENTWISE,
    EVERYTHING,
    NOTHING,
    PRODUCTS,
    WORDS,
    Formula,
    Recomputation,
    Recompute,
    Recomputed,
    real_model_formula,
)
from analysis.hardware.devices import DevicePeak
from analysis.identify.causes_of_flops import FormulaWork
from analysis.metrics import COMPUTED, Expression, Inputs
from analysis.model.shape import ModelShape, working_layers
from analysis.run.rows.frame_filters import known
from logparse.context.recomputed_operators import recomputed_parts
from logparse.context.run_context import RunContext
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Computation:
    """What the rates are computed with. ``recompute`` is the word for it, ``recomputed`` what it is; None is unknown.

    ``overrules`` names what the user gave of the batch and the sequence length: it replaces the rows' own.
    """

    formula: Formula
    shape: ModelShape
    seq_length: int | None
    world_size: int | None
    recompute: Recompute | None
    recomputed: Recomputed | None
    peak: DevicePeak | None
    global_batch_size: int | None = None
    overrules: frozenset[str] = frozenset()
    tokens_per_step: float | None = None

    @property
    def recompute_factor(self) -> float:
        """Forward and backward passes in the step: 3, and the share of the layers that is recomputed whole.

        3 where that is not known.
        """
        is_certain = self.recomputed.known if self.recomputed else None
        return (
            3 + is_certain.layers
            if is_certain and is_certain.layers % 1
            else 4
            if is_certain and is_certain.layers
            else 3
        )

    @property
    def quoted(self) -> Recomputation:
        """The recomputation that the formula's own figure counts; nothing where it is not known."""
        is_certain = self.recomputed.known if self.recomputed else None
        return self.formula.quoted_part(is_certain) if is_certain else NOTHING

    def flops_per_sample(
        self, seq_length: int, recompute: Recomputation, formula: Formula | None = None
    ) -> float | None:
        """FLOPs of one sample of ``seq_length`` tokens; None where a size is unknown or a part is not counted apart."""
        per_token = (formula or self.formula).hardware_flops_per_token(self.shape, seq_length, recompute)
        return None if per_token is None else per_token * seq_length

    def executed_flops(self, seq_length: int, formula: Formula | None = None) -> tuple[float, float] | None:
        """FLOPs of one sample as executed, at least and at most; None where a size or the recomputation is unknown.

        Of the real model, unless a ``formula`` is given.
        """
        if self.recomputed is None:
            return None
        counted = formula or real_model_formula()
        least = counted.least_per_token(self.shape, seq_length, self.recomputed.least)
        most = counted.most_per_token(self.shape, seq_length, self.recomputed.most)
        return None if least is None or most is None else (least * seq_length, most * seq_length)

    def executed_once(self, seq_length: int) -> float | None:
        """FLOPs of one sample of the real model as executed; None also where only a range is known."""
        ends = self.executed_flops(seq_length)
        return ends[0] if ends and ends[0] == ends[1] else None

    def executed_times(self) -> tuple[float, float] | None:
        """The work as executed over that of the model, at least and at most: HFU over MFU. None where unknown."""
        if self.seq_length is None:
            return None
        model = self.flops_per_sample(self.seq_length, NOTHING, real_model_formula())
        ends = self.executed_flops(self.seq_length)
        return None if ends is None or not model else (ends[0] / model, ends[1] / model)

    def formula_work(self) -> FormulaWork:
        """The model's work and the executed work, by the chosen formula, as parts of the work its TFLOP/s count."""
        length = self.seq_length
        counted = self.flops_per_sample(length, self.quoted) if length else None
        if length is None or not counted:
            return FormulaWork(None, None)
        model, ends = self.flops_per_sample(length, NOTHING), self.executed_flops(length, self.formula)
        once = ends[0] if ends and ends[0] == ends[1] else None
        return FormulaWork(model and model / counted, once and once / counted)


def plan_computation(context: RunContext, formula: Formula, peak: DevicePeak | None) -> Computation:
    """Take from ``context`` what the rates need."""
    return Computation(
        formula=formula,
        shape=ModelShape.from_quantities(context.values()),
        seq_length=context.get("seq_length"),
        world_size=context.get("world_size"),
        recompute=cast("Recompute | None", context.get("recompute")),
        recomputed=read_recomputation(context),
        peak=peak,
        global_batch_size=context.get("global_batch_size"),
        tokens_per_step=context.get("tokens_per_step"),
        overrules=context.given & {"global_batch_size", "seq_length"},
    )


@dataclass(frozen=True)
class Later:
    """The computation from ``line_number`` of ``source`` on, where a later start printed other settings."""

    source: str
    line_number: int
    how: Computation


def by_settings(
    steps: pl.DataFrame,
    how: Computation,
    later: Sequence[Later],
    compute: Callable[[pl.DataFrame, Computation], pl.DataFrame],
) -> pl.DataFrame:
    """Apply ``compute`` to the rows of each computation; the order of the rows stays."""
    if not later:
        return compute(steps, how)
    at = _numbered(steps.with_row_index("at"), later)
    groups = at.partition_by("which", as_dict=True)
    hows = [how, *(x.how for x in later)]
    parts = [compute(rows.drop("which"), hows[int(key[0])]) for key, rows in groups.items()]
    return pl.concat(parts).sort("at").drop("at")


def in_force(rows: pl.DataFrame, how: Computation, later: Sequence[Later]) -> tuple[Computation, ...]:
    """The computations of ``rows`` in their order; that of the first start where there is no row."""
    used = _numbered(rows, later)["which"].unique(maintain_order=True) if later else ()
    return tuple((how, *(x.how for x in later))[n] for n in used) or (how,)


def before_changes(steps: pl.DataFrame, later: Sequence[Later]) -> pl.DataFrame:
    """The rows for which the settings of the first start hold."""
    return _numbered(steps, later).filter(pl.col("which") == 0).drop("which") if later else steps


def _numbered(steps: pl.DataFrame, later: Sequence[Later]) -> pl.DataFrame:
    """Add ``which``: the number of the row's computation in ``later``, counted from 1; 0 is the first start's.

    In a file that prints no settings those of the file before are in force.
    """
    schema = {"source": pl.String, "begin": pl.Int64, "which": pl.Int64}
    begins = pl.DataFrame([(x.source, x.line_number, i + 1) for i, x in enumerate(later)], schema, orient="row")
    joined = steps.join_asof(
        begins.sort("begin"), left_on="line_number", right_on="begin", by="source", check_sortedness=False
    )
    return joined.drop("begin").with_columns(pl.col("which").forward_fill().fill_null(0))


def fill_batch(steps: pl.DataFrame, how: Computation) -> pl.DataFrame:
    """Fill batch and sequence length of rows whose line does not print them.

    A row's own win over settings, because they change while the batch ramps up or under a curriculum; what the user
    gave wins over both.
    """
    known = {"global_batch_size": how.global_batch_size, "seq_length": how.seq_length}
    return steps.with_columns(
        pl.lit(value, pl.Int64).alias(name)
        if name in how.overrules
        else pl.col(name).fill_null(pl.lit(value, pl.Int64))
        for name, value in known.items()
    )


def compute_metrics(filled: pl.DataFrame, how: Computation) -> pl.DataFrame:
    """Add ``devices`` and the columns of all metrics of rows to rows that ``fill_batch`` has filled."""
    lengths = known(filled["seq_length"].unique()).to_list()
    inputs = Inputs(
        devices=pl.lit(how.world_size, pl.Float64),
        peak=pl.lit(how.peak.peak_tflops_per_second if how.peak else None, pl.Float64),
        formula_flops=_by_length(lengths, lambda s: how.flops_per_sample(s, how.quoted)),
        model_flops=_by_length(lengths, lambda s: how.flops_per_sample(s, NOTHING, real_model_formula())),
        executed_flops=_by_length(lengths, how.executed_once),
        tokens_per_step=pl.lit(how.tokens_per_step, pl.Float64),
    )
    for metric in COMPUTED:
        inputs.computed[metric.column] = cast("Expression", metric.expression)(inputs)
    return filled.with_columns(**inputs.computed, devices=pl.lit(how.world_size, pl.Int64))


def _by_length(lengths: list[int], flops_of: Callable[[int], float | None]) -> pl.Expr:
    """FLOPs of one sample by the row's sequence length."""
    flops = [flops_of(s) for s in lengths]
    if not flops or None in flops:
        return pl.lit(None, pl.Float64)
    return pl.col("seq_length").replace_strict(lengths, flops, default=None, return_dtype=pl.Float64)


CORE = WORDS["selective"]


def read_recomputation(context: RunContext) -> Recomputed | None:
    """The least and the most that the run may recompute."""
    recompute, whole = cast("Recompute | None", context.get("recompute")), context.get("recomputed_layers")
    if recompute is None and whole is None:
        return None
    if recompute == "none" and whole is None:
        return Recomputed.exactly(NOTHING)
    selected = _selected(context)
    if recompute == "selective" and whole is None:
        # A scheme of the framework's own, as torchtitan's, selects layers or operators.
        own = context.get("recompute_scheme") is not None
        other = Recomputed(NOTHING, EVERYTHING, _setting_of_layers(context)) if own else Recomputed.exactly(CORE)
        return selected or other
    layers = working_layers(context.values())
    if whole is None and _all_layers(context):
        return Recomputed.exactly(EVERYTHING)
    if whole is None or not layers:
        return Recomputed(NOTHING, EVERYTHING, _setting_of_layers(context))
    return _with_selected(_of_layers(whole, layers, context), selected)


def _all_layers(context: RunContext) -> bool:
    """Whether no setting names a part of the layers: then their number does not matter."""
    partly = ("recompute_scheme", "recompute_by_stage", "recomputed_layers")
    return context.get("recompute_method") != "block" and not any(context.get(name) is not None for name in partly)


def _of_layers(whole: int, layers: int, context: RunContext) -> Recomputation:
    """Depths of prediction run again with all layers; Megatron's block method leaves them out."""
    share = min(whole / layers, 1.0)
    depths = share == 1.0 and context.get("recompute_method") != "block"
    return Recomputation(share, float(depths))


def _with_selected(whole: Recomputation, selected: Recomputed | None) -> Recomputed:
    """Layers recomputed whole, and what is ``selected`` in the others."""
    if selected is None or whole.layers == 1.0:
        return Recomputed.exactly(whole)
    least, most = (Recomputation(whole.layers, whole.depths, end.modules) for end in (selected.least, selected.most))
    return Recomputed(least, EVERYTHING if selected.most == EVERYTHING else most, selected.setting)


def _selected(context: RunContext) -> Recomputed | None:
    """The parts of layers that are recomputed, by a list of modules or by patterns of operators."""
    listed, patterns = context.get("recompute_modules"), context.get("recompute_selected")
    if patterns is not None:
        parts = recomputed_parts(str(patterns))
        most = EVERYTHING if parts.most is None else Recomputation(modules=parts.most)
        setting = None if parts.least == parts.most else f"select_recompute {patterns}"
        return Recomputed(Recomputation(modules=parts.least), most, setting)
    if listed is None or context.get("recompute") != "selective":
        return None
    names = frozenset(regex.findall(r"\w+", str(listed)))
    return _range(names & PRODUCTS, names - PRODUCTS - ELEMENTWISE, f"recompute_modules {listed}")


def _range(known: frozenset[str], unknown: frozenset[str], setting: str) -> Recomputed:
    least = Recomputation(modules=known)
    return Recomputed(least, EVERYTHING, setting) if unknown else Recomputed.exactly(least)


def _setting_of_layers(context: RunContext) -> str:
    """The settings that leave open how many layers are recomputed."""
    names = ("recompute_scheme", "recompute_by_stage", "recompute_method", "recompute_num_layers", "pipeline_layout")
    settings = [f"{name} {context.get(name)}" for name in names if context.get(name) is not None]
    return ", ".join(settings) or "recompute full"
