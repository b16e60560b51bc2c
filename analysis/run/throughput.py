"""Rates per step: columns added to the steps frame.

Comes in: steps with ``step_time_ms``, the run's context, a formula, a peak. Goes out: samples/s/p, tokens/s/p,
TFLOP/s/p, peak utilization, MFU and HFU on every row, null where an input is unknown, with one sentence that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import polars as pl

from analysis.flops import NOTHING, Formula, Recomputation, Recompute, Recomputed, real_model_formula
from analysis.hardware.devices import DevicePeak
from analysis.identify.causes_of_flops import FormulaWork
from analysis.metrics import COMPUTED, Expression, Inputs
from analysis.model.shape import ModelShape
from analysis.run.frame_filters import known
from analysis.run.recomputation import read_recomputation
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
        known = self.recomputed.known if self.recomputed else None
        return 3 + known.layers if known and known.layers % 1 else 4 if known and known.layers else 3

    @property
    def quoted(self) -> Recomputation:
        """The recomputation that the formula's own figure counts; nothing where it is not known."""
        known = self.recomputed.known if self.recomputed else None
        return self.formula.quoted_part(known) if known else NOTHING

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
    """Add the columns of all metrics of rows to rows that ``fill_batch`` has filled."""
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
    return filled.with_columns(**inputs.computed)


def _by_length(lengths: list[int], flops_of: Callable[[int], float | None]) -> pl.Expr:
    """FLOPs of one sample by the row's sequence length."""
    flops = [flops_of(s) for s in lengths]
    if not flops or None in flops:
        return pl.lit(None, pl.Float64)
    return pl.col("seq_length").replace_strict(lengths, flops, default=None, return_dtype=pl.Float64)
