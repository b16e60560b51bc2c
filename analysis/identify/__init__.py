"""What a printed TFLOP/s or MFU means: by which formula, against which peak. Only the numbers decide.

Comes in: step rows and what is known of the run. Goes out: an answer and the findings that explain it. The framework's
name is not used.
"""

from __future__ import annotations

from typing import cast

import polars as pl

from analysis.flops import Recompute
from analysis.identify.disagreement import describe_disagreements
from analysis.identify.formula import Identification, identify_formula
from analysis.identify.implied_peak import ImpliedPeak, implied_peak
from analysis.identify.matching import LOGGED, TIME, Candidate, Rounding, measure_rounding
from analysis.model.shape import ModelShape
from logparse.context.run_context import RunContext

__all__ = [
    "LOGGED",
    "TIME",
    "Candidate",
    "Identification",
    "ImpliedPeak",
    "Rounding",
    "describe_disagreements",
    "identify",
    "identify_formula",
    "implied_peak",
    "measure_rounding",
]


def identify(steps: pl.DataFrame, context: RunContext) -> Identification:
    """Name the formula of the printed TFLOP/s of ``steps``, with what is known of the run."""
    batch = pl.lit(context.get("global_batch_size"), pl.Int64)
    return identify_formula(
        steps.with_columns(pl.col("global_batch_size").fill_null(batch)),
        ModelShape.from_quantities(context.values()).all_trained,
        context.get("seq_length"),
        context.get("world_size"),
        cast("Recompute | None", context.get("recompute")),
    )
