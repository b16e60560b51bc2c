"""The printed formulas compared with a log: the value of each for the log's row of median time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS, PrintedFormula
from analysis.identify.matching import TIME, missing_inputs
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Candidate:
    """One printed formula compared with the log, at the row of median time; unknown is None.

    ``missing`` names its missing inputs. ``difference`` is relative to the log's value in TFLOP/s.
    """

    id: str
    title: str
    missing: tuple[str, ...]
    tflops_per_second_per_device: float | None
    difference: float | None
    matches: bool


def candidates(
    shape: ModelShape, row: pl.DataFrame, meant: float | None, matches: tuple[str, ...]
) -> tuple[Candidate, ...]:
    """Every printed formula compared with the one ``row``; ``meant`` is its printed value in TFLOP/s."""
    return tuple(_candidate(f, shape, row, meant, f.id in matches) for f in PRINTED_FORMULAS.values())


def _candidate(
    formula: PrintedFormula, shape: ModelShape, row: pl.DataFrame, meant: float | None, matches: bool
) -> Candidate:
    missing = missing_inputs(formula, shape, row)
    value = None if missing or row.is_empty() else _tflops(formula, shape, row.row(0, named=True))
    difference = None if value is None or meant is None else value / meant - 1
    return Candidate(formula.id, formula.title, missing, value, difference, matches)


def _tflops(formula: PrintedFormula, shape: ModelShape, row: Mapping[str, Any]) -> float | None:
    flops = formula.flops_per_token(shape, row["seq_length"], row[CORE_ATTENTION_RATIO])
    return None if flops is None else flops * row["work"] / row[TIME]
